"""What the agent takes of a limit is not there for the program: it may not fail earlier than without."""

import sys

import pytest

from receiver import HEARD, several, watched

# All but 16 MiB of the address space that is left are taken once memory was looked at.
ADDRESS_SPACE = (
    HEARD
    + """
import gc, mmap, resource, sys
def address_space():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmSize"))
room = 512 << 20
limit = address_space() + room
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
before = address_space()
kept = []
while not heard():
    kept.append([None])
    gc.collect()
after = address_space()
held = mmap.mmap(-1, room - (16 << 20))
print(after - before < 8 << 20, after - before)
"""
)

# Each of its threads may have taken what is left: nothing more is reserved for a look.
OF_SEVERAL = (
    HEARD
    + """
import gc, os, resource, sys, threading, time
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
threading.Thread(target=threading.Event().wait, daemon=True).start()
end = time.monotonic() + float(sys.argv[2])  # the first look is due after a second
while time.monotonic() < end and not heard():
    gc.collect()
print(heard())
"""
)

# What a tracer of the program is called for, where code of the agent has no thread of its own.
TRACED = (
    HEARD
    + """
import gc, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
files = set()
def trace(frame, event, argument):
    files.add(frame.f_code.co_filename)
sys.settrace(trace)
def work():
    gc.collect()
    return heard()
for _ in range(int(sys.argv[1])):
    if work():
        break
sys.settrace(None)
print(sorted(name for name in files if "ullage" in name))
"""
)

# A signal that came while C code ran is not handled by the time that a look begins.
SIGNALLED = (
    HEARD
    + """
import gc, resource, signal, time
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
class Late(Exception):
    pass
fired = caught = 0
armed = False
def alarm(*_):
    global armed, fired
    if armed:
        armed, fired = False, fired + 1
        raise Late
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
kept = [[n] for n in range(20_000)]
while not heard():
    kept.append(bytearray(20_000))
    try:
        armed = True
        gc.collect()
        armed = False
    except Late:
        caught += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(fired == caught, fired, caught)
"""
)


def test_a_look_takes_no_address_space_where_it_is_limited(python, script):
    ended, _ = watched([python, script(ADDRESS_SPACE)], until=several(1, "memory"), text=True)
    assert ended.returncode == 0 and ended.stdout.startswith("True "), ended.stdout + ended.stderr


@pytest.mark.parametrize("limit, seconds, looked", [(2 << 30, 3, False), (64 << 30, 60, True)])
def test_a_program_of_several_threads_is_looked_into_where_there_is_ample(script, limit, seconds, looked):
    command = [sys.executable, script(OF_SEVERAL), str(limit), str(seconds)]
    ended, _ = watched(command, until=several(1, "memory"), text=True)
    assert ended.stdout == f"{looked}\n", ended.stderr


def test_a_tracer_is_called_for_nothing_of_the_agents(python, script):
    ended, _ = watched([python, script(TRACED), "2000"], until=several(1, "memory"), text=True)
    assert ended.stdout == "[]\n", ended.stdout + ended.stderr


def test_no_exception_of_a_signal_handler_is_lost_where_there_is_no_thread(script):
    ended, _ = watched([sys.executable, script(SIGNALLED)], until=several(2, "memory"), text=True)
    assert ended.stdout.startswith("True "), ended.stdout + ended.stderr
