"""The thread that asks for a moment where the program comes by nowhere, and that nothing of the program meets it."""

import sys

from receiver import HEARD, several, watched

# Bytes are nothing that the collector counts, and select() no moment: only the thread sees that memory rises.
GROWS = (
    HEARD
    + """
import gc, select
gc.collect()
kept = []
while not heard():
    kept.append(bytes(1 << 20))
    select.select([], [], [], 0.02)
"""
)

FORKS = """
import gc, os, sys, time
gc.collect()
def threads():
    return len(os.listdir("/proc/self/task"))
assert threads() == int(sys.argv[1]), threads()
for _ in range(20):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, b"%d" % threads())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(read, 9) == sys.argv[1].encode()
assert threads() == int(sys.argv[1]), threads()
"""


def test_a_loop_of_native_calls_is_looked_into(script):
    _, receiver = watched([sys.executable, script(GROWS)], until=several(2, "census"))
    holders = [one["name"] for census in receiver.of("census")[1:] for one in census["holders"]]
    assert "__main__.kept" in holders


def test_a_fork_warns_of_no_thread_and_a_child_has_its_own(python, script):
    ended, _ = watched([python, "-W", "error", script(FORKS), "2"])
    assert ended.returncode == 0, ended.stderr


def test_without_it_there_is_no_thread(script):
    ended, _ = watched([sys.executable, script(FORKS), "1"], env={"ULLAGE_AGENT_NO_THREAD": "1"})
    assert ended.returncode == 0, ended.stderr
