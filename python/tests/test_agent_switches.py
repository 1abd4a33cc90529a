"""Whatever the agent replaces in a job stays as it is where its switch says so; without the switch it tells by it."""

import os
import pathlib
import posix
import re
import sys
import tracemalloc
import types

import pytest

import agent_parts
import receiver
from receiver import watched

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MIB = 1 << 20

# A look at memory is due from here on, and comes at the first moment that the program gives; the collector gives none.
DUE = """
import gc, sys
gc.disable()
kept = bytearray(b"1") * (400 << 20)
sys.modules["_ullage_common"].native.next_sample(0.0)
"""


def looked(heard):
    return any(said["figures"]["anonymous"] > 400 * MIB for said in heard.of("memory"))


def left(where):
    return lambda heard: any(said["left"] == where for said in heard.of("exception"))


def told(kind):
    return lambda heard: heard.of(kind) != []


# switch: (a program, whether the agent told what it tells by what it replaces)
CASES = {
    "SLEEP": ("import time" + DUE + "time.sleep(0)", looked),
    "COLLECTIONS": (DUE + "gc.collect(0)", looked),
    "EXCEPTHOOK": (
        "import threading\nthread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()",
        left("thread"),
    ),
    "TRACEBACK": (
        "import multiprocessing\nq = multiprocessing.Queue()\nq.put(lambda: 0)\nq.close()\nq.join_thread()",
        left("thread"),
    ),
    "CARRIERS": (
        """
import multiprocessing
with multiprocessing.get_context("fork").Pool(1) as pool:
    try:
        pool.apply(int, ("x",))
    except ValueError:
        pass
""",
        left("executor-worker"),
    ),
    "PROCESSES": (
        "import multiprocessing\np = multiprocessing.get_context('fork').Process(target=int)\np.start()\np.join()",
        told("process"),
    ),
    "MESSAGES": (
        "import multiprocessing\nreader, writer = multiprocessing.Pipe(False)" + DUE + "writer.send(1)\nreader.recv()",
        looked,
    ),
    "QUEUES": ("import queue\nq = queue.Queue()\nfor _ in range(70): q.put(b'x' * (1 << 20))", told("backlog")),
    "POOLS": (
        """
import multiprocessing
LARGE = bytes(32 << 20)
with multiprocessing.get_context("fork").Pool(1) as pool:
    pool.apply(int)
""",
        told("holds"),
    ),
    "IMPORTS": ("import queue\nq = queue.Queue()\nfor _ in range(70): q.put(b'x' * (1 << 20))", told("backlog")),
    "LOADERS": ("import torch.utils.data as data\nlist(data.DataLoader(range(4), num_workers=1))", told("loader")),
    "MODELS": ("import torch\nmodel = torch.nn.Identity()" + DUE + "model(1)", looked),
    "OPTIMIZERS": (
        "import torch\nmodel = torch.nn.Parameter(torch.ones(1))\nmodel.grad = torch.ones(1)\n"
        "optimizer = torch.optim.SGD([model], 0.1)" + DUE + "optimizer.step()",
        looked,
    ),
    "COLLECTIVES": (
        """
import torch.distributed as distributed
distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
distributed.all_gather_object([None], bytes(4 << 20))
distributed.destroy_process_group()
""",
        told("collective"),
    ),
}
ELSEWHERE = {"ALLOCATIONS", "AUDIT", "FRAMES", "THREAD", "TRACEMALLOC"}


@pytest.mark.parametrize("switch", list(CASES))
def test_what_a_switch_names_is_left_as_it_is(script, switch):
    program, tells = CASES[switch]
    if "torch" in program:
        pytest.importorskip("torch")
    for value, expected in (("0", True), ("1", False)):
        # Without what gives moments where the program gives none.
        others = {"ULLAGE_AGENT_NO_THREAD": "1", "ULLAGE_AGENT_NO_ALLOCATIONS": "1"}
        environment = {**os.environ, **others, f"ULLAGE_AGENT_NO_{switch}": value}
        done, heard = watched([sys.executable, script(program)], env=environment, text=True)
        assert done.returncode == 0, done.stderr
        assert tells(heard) is expected, (value, heard.messages)


def test_frames_under_an_import_have_their_own_names(script):
    script(
        "import traceback\nprint('_hooks.py' in repr([one.filename for one in traceback.extract_stack()]))", "numpy.py"
    )
    for value, expected in (("0", "False\n"), ("1", "True\n")):
        environment = {**os.environ, "ULLAGE_AGENT_NO_FRAMES": value}
        done, _ = watched([sys.executable, script("import numpy")], env=environment, text=True)
        assert done.stdout == expected, done.stderr


@pytest.mark.parametrize("value", ["0", "1"])
def test_allocations_are_not_traced(monkeypatch, value):
    monkeypatch.setitem(posix.environ, b"ULLAGE_AGENT_NO_TRACEMALLOC", value.encode())
    monkeypatch.delitem(sys.modules, "tracemalloc")
    agent_parts.forget()
    memory = agent_parts.common(receiver.library()).load("memory")
    memory._growth = types.SimpleNamespace(first=0, last=1 << 30, rising=memory.RISING)
    memory._census = types.SimpleNamespace(due=lambda *_: True, take=lambda *_: None, unexplained=True)
    try:
        memory._take_census([].append, 1 << 30, 0.0)
        crashes = sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)  # gh-128679
        assert tracemalloc.is_tracing() is (value == "0" and not crashes)
    finally:
        tracemalloc.stop()
        agent_parts.forget()


def test_each_switch_is_tested_and_stands_in_the_reference():
    parts = "".join(path.read_text() for path in receiver.AGENT.glob("*.py"))
    switches = set(re.findall(r'replaces\(b"(\w+)"\)', parts))
    page = (ROOT / "docs/reference/agent.md").read_text()
    assert switches == {*CASES, *ELSEWHERE}
    assert switches == set(re.findall(r"^\| `ULLAGE_AGENT_NO_(\w+)` \|", page, re.MULTILINE))
