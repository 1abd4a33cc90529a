"""That no function of the agent stays: what it was called with, objects of the program's, would stay as well, and be
freed late, in another thread, or not before the interpreter's end."""

import _thread
import functools
import resource
import sys
import threading

import pytest

import agent_parts
import receiver
from receiver import HEARD, several, watched

# The collector is off: what a circle keeps is kept.
STAYS = """
import atexit, gc, sys, types
gc.disable()
def of_the_agent():
    frames = [one for one in gc.get_objects() if type(one) is types.FrameType]
    ours = [one for one in frames if str(one.f_globals.get("__name__")).startswith("_ullage_")]
    print(sorted(f"{one.f_globals['__name__']}.{one.f_code.co_name}" for one in ours))
"""

# `dis` is what the agent reads code with, where the program has it.
GROWS = """
import dis, time
def grows():
    kept = []
    while not heard():
        kept.append([bytearray(b"x") * 500_000, [object() for _ in range(20_000)]])
        time.sleep(0.01)
grows()
of_the_agent()
"""

BESIDE_THREADS = """
import threading, time
rests = threading.Event()
threads = [threading.Thread(target=rests.wait) for _ in range(2)]
for one in threads:
    one.start()
"""

# As the loop over a DataLoader: what the agent is called with is the iterator itself.
ITERATES = """
import time, weakref
from _ullage_common import native
from _ullage_safe_points import sample_if_due, IN_TIME
class Batches:
    def __iter__(self):
        return self
    def step(self):
        time.sleep(0.01)
    def __next__(self):
        if heard():
            raise StopIteration
        self.step()
        return bytearray(b"x") * 500_000
Batches.step = native.access(Batches.step, sample_if_due, IN_TIME)
def trains(kept=[]):
    batches = Batches()
    ended = weakref.ref(batches)
    for one in batches:
        kept.append(one)
    del batches
    print(ended() is None)
trains()
of_the_agent()
"""

FAILS = """
import sys, threading
def fails():
    raise MemoryError("too much")
kept = bytearray(b"x") * (64 << 20)
thread = threading.Thread(target=fails)
thread.start()
thread.join()
atexit.register(of_the_agent)
raise ValueError("as well")
"""


@pytest.fixture
def native():
    agent_parts.forget()
    yield agent_parts.common(receiver.library()).native
    agent_parts.forget()


def test_the_programs_frame_is_named_where_the_agent_runs_in_its_thread(native):
    ours = {"__name__": "_ullage_part", "native": native}
    exec("def asks():\n    return native.frames()\ndef calls():\n    return asks()", ours)
    assert ours["calls"]()[threading.get_ident()] is sys._getframe()
    exec("def asks_again():\n    return theirs()", ours)
    ours["theirs"] = lambda: native.frames()  # of the program, called by the agent
    assert ours["asks_again"]()[threading.get_ident()].f_code is ours["theirs"].__code__


def test_names_that_only_resemble_ours_are_the_programs(native):
    for name in ("ullage_part", "_ullag", None, 7, "x_ullage_"):
        names = {"__name__": name, "native": native}
        exec("def asks():\n    return native.frames()", names)
        found = names["asks"]()[threading.get_ident()]
        assert found.f_code is names["asks"].__code__, name


def test_a_thread_without_a_function_of_the_program_is_left_out(native):
    ended, found = threading.Event(), []
    ours = {"__name__": "_ullage_part", "native": native, "ended": ended, "found": found}
    exec("def runs():\n    found.append(native.frames())\n    ended.set()", ours)
    number = _thread.start_new_thread(ours["runs"], ())
    assert ended.wait(60)
    assert number not in found[0] and threading.get_ident() in found[0]


def test_functions_of_the_agent_in_other_threads_are_none_of_the_programs(native):
    began, found = threading.Event(), []
    lock = _thread.allocate_lock()
    lock.acquire()
    ours = {"__name__": "_ullage_part", "began": began, "wait": lock.acquire}
    exec("def waits():\n    began.set()\n    wait()", ours)

    def of_the_program():
        ours["waits"]()

    thread = threading.Thread(target=of_the_program)
    thread.start()
    assert began.wait(60)
    while not found:
        codes = [frame.f_code for frame in native.frames().values()]
        innermost = sys._current_frames()[thread.ident].f_code
        found = [codes] if innermost is ours["waits"].__code__ else []
    lock.release()
    thread.join()
    assert of_the_program.__code__ in found[0] and ours["waits"].__code__ not in found[0]


def test_what_a_program_put_in_place_of_pythons_own_is_not_called(native, monkeypatch):
    def asked():
        raise AssertionError("asked")

    monkeypatch.setattr(sys, "_current_frames", asked)
    assert native.frames()[threading.get_ident()] is sys._getframe()


def test_a_namespace_without_a_name_is_the_programs_however_large(native):
    names = {**{f"name_{number}": number for number in range(100_000)}, "native": native}
    exec("def asks():\n    return native.frames()", names)
    assert names["asks"]()[threading.get_ident()].f_code is names["asks"].__code__


CASES = {
    "grows": (GROWS, {"memory": 1, "census": 2, "work": 1}),
    "beside-threads": (BESIDE_THREADS + GROWS + "rests.set()\n", {"memory": 1, "census": 1, "work": 1}),
    "iterates": (ITERATES, {"memory": 1, "work": 1}),
    "fails": (FAILS, {"exception": 1}),
}


# A program of several threads that may have little address space is not looked into.
RUNS = [
    (case, in_place)
    for case in CASES
    for in_place in (False, True)
    if not in_place or "threading" not in CASES[case][0]
]


@pytest.mark.parametrize(
    ("case", "in_place"), RUNS, ids=[f"{case}-in-place" if in_place else case for case, in_place in RUNS]
)
def test_no_function_of_the_agent_outlives_its_call(python, script, case, in_place):
    program, kinds = CASES[case]

    def all_came(messages):
        return all(several(number, kind)(messages) for kind, number in kinds.items())

    limited = {"preexec_fn": functools.partial(resource.setrlimit, resource.RLIMIT_AS, (6 << 30, 6 << 30))}
    command = [python, script(HEARD + STAYS + program)]
    done, receiver = watched(command, until=all_came, text=True, **(limited if in_place else {}))
    assert all_came(receiver.messages), {message["kind"] for message in receiver.messages}
    assert done.stdout.splitlines() == (["True", "[]"] if case == "iterates" else ["[]"]), done.stderr
