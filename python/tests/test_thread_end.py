"""Python may end beside daemon threads that send, wait or read, as torch's pin_memory thread does.

No tensor: torch itself ends a process ("terminate called") whose thread is in one of its operations then.
"""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch")

PROGRAM = """
import os, sys, threading
import numpy, ullage

context = ullage.context("fork")
sys.setswitchinterval(1e-5)
going = threading.Barrier(7)


def sends():
    queue = context.Queue()
    message = [os.urandom(300), {{"a": 1}}, numpy.ones(400_000)]
    while True:
        queue.put(message)
        queue.get()
        reached()


def waits():
    queue = context.Queue()
    while True:
        try:
            queue.get(timeout=0.0005)
        except Exception:
            reached()


def shares():
    rows = ullage.share([{{"text": str(n), "x": numpy.ones(3)}} for n in range(300)])
    while True:
        [row["x"] for row in rows]
        reached()


def once():
    first = threading.local()

    def reached():
        if not hasattr(first, "done"):
            first.done = True
            going.wait()

    return reached


reached = once()
for target in (sends, waits, shares) * 2:
    threading.Thread(target=target, daemon=True).start()
going.wait()
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError('as asked')"])
def test_a_program_ends_as_it_would_beside_threads_that_send_and_wait(end):
    program = textwrap.dedent(PROGRAM).format(end=end)
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
        expected = {"": 0, "sys.exit(3)": 3}.get(end, 1)
        assert done.returncode == expected, done.stderr
        assert done.stderr.rpartition("\n")[0].rpartition("\n")[2] == ("ValueError: as asked" if expected == 1 else "")
