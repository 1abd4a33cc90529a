"""What asks for a moment where the program comes by nowhere, its allocations or a thread, and that the program meets neither."""

import os
import subprocess
import sys

import pytest

from receiver import HEARD, Receiver, several, watched

# Until the agent's thread is there beside the two of the program.
SEVERAL_THREADS = (
    HEARD
    + """
import gc, os, select, sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
while len(os.listdir("/proc/self/task")) < 3:
    gc.collect()
kept = []
"""
)

# A program of several threads. Bytes are nothing that the collector counts, and select() no moment: only the thread sees
# that memory rises.
GROWS = (
    SEVERAL_THREADS
    + """
while not heard():
    kept.append(b"x" * (1 << 20))
    select.select([], [], [], 0.02)
"""
)

# A program of one thread that computes: no container for the collector, no sleep, and no thread but its own.
COMPUTES = (
    HEARD
    + """
import os, sys
kept = {"large": [], "small": []}[sys.argv[1]]
number = 0
while not heard():
    number += 1
    if sys.argv[1] == "large":
        sum(range(100_000))  # the machine's memory is not for one test
        kept.append(b"%d" % number * 100_000)
    else:
        kept.append(b"%d" % number)
    if number % 1000 == 0:
        assert len(os.listdir("/proc/self/task")) == 1
"""
)

# The context of the table of allocations, which is none where nothing stands in front.
TABLE = """
import ctypes
class Table(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]
table = Table()
ctypes.pythonapi.PyMem_GetAllocator(0, ctypes.byref(table))
print(table.context is not None)
"""

COUNTS = """
import gc, os, sys, threading, time
def threads():
    return len(os.listdir("/proc/self/task"))
def of_a_child():
    read, write = os.pipe()
    child = os.fork()
    if not child:
        gc.collect()
        os.write(write, b"%d" % threads())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return int(os.read(read, 9))
"""

# No thread more, whatever it collects and forks; where one stood beside a fork, CPython would warn of it.
OF_ONE_THREAD = (
    COUNTS
    + """
for _ in range(20):
    gc.collect()
    assert threads() == 1, threads()
    assert of_a_child() == 1
"""
)

# One more after a collection, none in a child, and one again when some time has gone by.
OF_TWO_THREADS = (
    COUNTS
    + """
threading.Thread(target=threading.Event().wait, daemon=True).start()
for _ in range(2):
    end = time.monotonic() + 30
    while threads() != int(sys.argv[1]) and time.monotonic() < end:
        gc.collect()
    assert threads() == int(sys.argv[1]), threads()
    assert of_a_child() == 1
"""
)

# None where this process has half of the threads that it may have, and one when it may have more.
NEAR_THE_LIMIT = (
    COUNTS
    + """
import resource
_, most = resource.getrlimit(resource.RLIMIT_NPROC)
resource.setrlimit(resource.RLIMIT_NPROC, (4, most))
threading.Thread(target=threading.Event().wait, daemon=True).start()
end = time.monotonic() + 0.5  # it is tried each tenth of a second
while time.monotonic() < end:
    gc.collect()
    assert threads() == 2, threads()
resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
end = time.monotonic() + 30
while threads() != 3 and time.monotonic() < end:
    gc.collect()
assert threads() == 3, threads()
"""
)

# Nothing but the thread asks, and only for what came since the last message; so many MiB each time.
RISES = (
    SEVERAL_THREADS
    + """
for number in range(4):
    kept.append(b"x" * (int(sys.argv[1]) << 20))
    while not heard(number + int(sys.argv[2])):
        select.select([], [], [], 0.02)
"""
)

# A thread forks while the main one is in a look that its allocations asked for. In the child a pending call is made.
FORKS_IN_A_LOOK = (
    HEARD
    + """
import ctypes, gc, os, sys, threading
gc.disable()
sys.setswitchinterval(1e-5)
called, ended = [], []
def note(_):
    called.append(1)
    return 0
note_in_c = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(note)
def forks():
    while not heard(0):
        if len(os.listdir("/proc/self/task")) <= 2:
            continue
        child = os.fork()
        if not child:
            ctypes.pythonapi.Py_AddPendingCall(note_in_c, None)
            for _ in range(1_000_000):
                if called:
                    os._exit(0)
            os._exit(1)
        ended.append(os.waitpid(child, 0)[1])
thread = threading.Thread(target=forks)
thread.start()
kept, number = [], 0
while not heard(0):
    number += 1
    sum(range(10_000))  # the machine's memory is not for one test
    kept.append(b"%d" % number * 10_000)
thread.join()
print(any(ended), len(ended))
"""
)


def test_a_loop_of_native_calls_is_looked_into(script):
    _, receiver = watched([sys.executable, script(GROWS)], until=several(2, "census"))
    holders = [one["name"] for census in receiver.of("census")[1:] for one in census["holders"]]
    assert "__main__.kept" in holders


def test_what_rises_fast_is_looked_into_sooner(script):
    begun = []

    def of(which, number):
        def holds(messages):
            told = [message["pid"] for message in messages if message["kind"] == "memory"]
            return len(begun) == 2 and told.count(begun[which].pid) > number

        return holds

    with Receiver(until=[of(which, number) for which in range(2) for number in range(4)]) as receiver:
        for mib, first in ((64, 0), (8, 4)):
            command = [sys.executable, script(RISES), str(mib), str(first)]
            begun.append(subprocess.Popen(command, env=receiver.environment()))
        assert [one.wait() for one in begun] == [0, 0]
    told = [message["pid"] for message in receiver.of("memory")]
    fast, slow = begun
    last_of_fast = [place for place, pid in enumerate(told) if pid == fast.pid][3]
    assert told[:last_of_fast].count(slow.pid) < 3, told


def test_a_loop_of_one_thread_is_looked_into_where_it_allocates(python, script):
    ended, receiver = watched([python, script(COMPUTES), "large"], until=several(1, "memory"))
    assert ended.returncode == 0 and receiver.of("memory"), ended.stderr


@pytest.mark.parametrize("size", ["large", pytest.param("small", marks=pytest.mark.thorough)])
def test_what_a_loop_of_one_thread_fills_has_a_name(script, size):
    ended, receiver = watched([sys.executable, script(COMPUTES), size], until=several(2, "census"))
    assert ended.returncode == 0, ended.stderr
    holders = [one["name"] for census in receiver.of("census")[1:] for one in census["holders"]]
    assert "__main__.kept" in holders


@pytest.mark.parametrize("value", ["0", "1"])
def test_allocations_may_be_left_as_they_are(script, value):
    ended, _ = watched([sys.executable, script(TABLE)], env={"ULLAGE_AGENT_NO_ALLOCATIONS": value}, text=True)
    assert ended.stdout == ("True\n" if value == "0" else "False\n"), ended.stderr


@pytest.mark.parametrize("options", [["-X", "tracemalloc"], ["-X", "dev"]])
def test_other_tables_of_allocations_stay_in_use(python, script, options):
    program = "import tracemalloc\nkept = bytes(1 << 20)\n"
    program += "print(tracemalloc.get_object_traceback(kept) is not None if tracemalloc.is_tracing() else None)\n"
    program += "tracemalloc.stop(); tracemalloc.start(); more = bytes(1 << 20)\n"
    program += "print(tracemalloc.get_object_traceback(more) is not None); tracemalloc.stop()"
    ended, _ = watched([python, *options, script(program)], text=True)
    assert ended.stdout == ("True\nTrue\n" if "tracemalloc" in options else "None\nTrue\n"), ended.stderr


# Whoever stood in front already may stand there once more: not one in front of the other in a circle.
AGAIN_IN_FRONT = """
import ctypes, tracemalloc
for _ in range(2):
    ctypes.pythonapi.PyMem_SetupDebugHooks()
    kept = [bytes(100_000) for _ in range(100)]
    tracemalloc.start()
    kept += [bytes(100_000) for _ in range(100)]
    tracemalloc.stop()
"""


@pytest.mark.parametrize("allocator", ["debug", "malloc_debug", "pymalloc_debug"])
def test_debug_hooks_may_be_asked_for_again(python, script, allocator):
    environment = {**os.environ, "PYTHONMALLOC": allocator}
    ended, _ = watched([python, script(AGAIN_IN_FRONT)], env=environment, text=True)
    assert ended.returncode == 0, ended.stderr


def test_a_program_of_one_thread_stays_one(python, script):
    ended, _ = watched([python, "-W", "error", script(OF_ONE_THREAD)])
    assert ended.returncode == 0, ended.stderr


def test_a_program_of_several_has_one_more_and_its_child_none(python, script):
    ended, _ = watched([python, "-W", "ignore", script(OF_TWO_THREADS), "3"])
    assert ended.returncode == 0, ended.stderr


def test_without_it_there_is_no_thread(script):
    ended, _ = watched([sys.executable, script(OF_TWO_THREADS), "2"], env={"ULLAGE_AGENT_NO_THREAD": "1"})
    assert ended.returncode == 0, ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="root may start threads above the limit, others none here")
def test_a_program_near_its_limit_of_threads_has_none_more(script):
    ended, _ = watched([sys.executable, script(NEAR_THE_LIMIT)])
    assert ended.returncode == 0, ended.stderr


def test_a_fork_in_a_look_leaves_a_child_its_pending_calls(python, script):
    if "3.13" in python:
        pytest.skip("CPython 3.13 makes none where another thread than the main one forked")
    environment = {"ULLAGE_AGENT_NO_THREAD": "1"}
    ended, _ = watched(
        [python, "-W", "ignore", script(FORKS_IN_A_LOOK)], until=several(3, "memory"), env=environment, text=True
    )
    assert ended.stdout.startswith("False "), ended.stdout + ended.stderr
