"""Where it is allocated that a Python grows by: the line is named, tracing ends, and a program's own tracing is left alone."""

import pathlib
import subprocess
import sys
import tracemalloc

import pytest

import agent_parts
from receiver import HEARD, place_of, several, watched

AGENT = pathlib.Path(__file__).resolve().parent.parent / "ullage" / "agent"
MIB = 1 << 20


@pytest.fixture
def sites(monkeypatch):
    module = agent_parts.load("sites")
    monkeypatch.setattr(module.common, "end_of_tracing_may_crash", lambda version: False)
    yield module
    tracemalloc.stop()
    agent_parts.forget()


def line_of(function, offset):
    code = function.__code__
    return f"{pathlib.Path(code.co_filename).name}:{code.co_firstlineno + offset}"


def keeps(some):
    some.extend(bytes(MIB) for _ in range(4))
    some.append(bytearray(MIB))
    bytes(8 * MIB)  # given back at once


def test_the_line_that_allocated_what_is_kept_is_named(sites):
    said, some = [], []
    sites.start(100 * MIB)
    assert sites.look(said.append, 101 * MIB) == sites.AGAIN_S
    keeps(some)
    assert sites.look(said.append, 100 * MIB + sites.ENOUGH) is None
    message = said[0]
    assert message["kind"] == "sites" and message["came"] == sites.ENOUGH
    assert 5 * MIB <= message["bytes"] < 6 * MIB
    first, second = message["sites"][:2]
    # The list's own room is a block, too.
    assert first["line"] == line_of(keeps, 1) and first["blocks"] >= 4
    assert 4 * MIB <= first["bytes"] < 4 * MIB + 4096
    assert second["line"] == line_of(keeps, 2)
    assert not tracemalloc.is_tracing()
    assert sites.look(said.append, 0) is None and len(said) == 1


def test_what_the_agent_allocated_is_not_the_programs(sites):
    said, names = [], {}
    exec(compile("def keeps():\n    return bytes(1 << 20)", "/agent/ullage_census.py", "exec"), names)
    sites.start(0)
    kept = names["keeps"]()
    sites.look(said.append, sites.ENOUGH)
    assert not [one for message in said for one in message["sites"] if "ullage_" in one["line"]], len(kept)


@pytest.mark.parametrize("reason", ["blocks", "time"])
def test_it_ends_where_nothing_large_comes(sites, reason):
    said, some = [], []
    sites.start(0)
    if reason == "blocks":
        some.extend(str(number) + "." for number in range(sites.MANY + 100))
    else:
        sites._began -= sites.LONGEST_S
        some.append(bytes(MIB))
    assert sites.look(said.append, 0) is None
    assert len(said) == 1 and said[0]["blocks"] >= 1
    assert not tracemalloc.is_tracing()


def test_a_process_is_traced_twice_at_most_and_not_at_once_again(sites):
    said = []
    sites.start(0)
    kept = [bytes(MIB)]
    sites.look(said.append, sites.ENOUGH)
    sites.start(0)
    assert not tracemalloc.is_tracing(), "too soon"
    for _ in range(3):
        sites._next = 0.0
        sites.start(0)
        kept.append(bytes(MIB))
        sites.look(said.append, sites.ENOUGH)
    assert len(said) == sites.TIMES


def test_a_program_that_traces_by_itself_is_left_alone(sites):
    tracemalloc.start(3)
    said = []
    sites.start(0)
    assert sites.look(said.append, sites.ENOUGH) is None and said == []
    assert tracemalloc.is_tracing() and tracemalloc.get_traceback_limit() == 3


def test_a_program_that_stops_the_tracing_is_left_alone(sites):
    said = []
    sites.start(0)
    tracemalloc.stop()
    assert sites.look(said.append, sites.ENOUGH) is None and said == []


@pytest.mark.parametrize(
    "version, may",
    [
        ((3, 9, 20), True),
        ((3, 11, 13), True),
        ((3, 12, 8), True),
        ((3, 12, 9), False),
        ((3, 13, 1), True),
        ((3, 13, 2), False),
        ((3, 14, 0), False),
    ],
)
def test_which_pythons_a_thread_of_c_crashes_as_tracing_ends(version, may):
    assert agent_parts.load("common").end_of_tracing_may_crash(version) is may
    agent_parts.forget()


def test_nothing_is_traced_where_that_may_crash(sites, monkeypatch):
    monkeypatch.setattr(sites.common, "end_of_tracing_may_crash", lambda version: True)
    sites.start(0)
    assert not tracemalloc.is_tracing()


# Due for a reading, in a program of several threads; by `time.sleep`, as nothing else comes by.
TRACED = """
import gc, sys, threading, time, tracemalloc
gc.disable()
threading.Thread(target=threading.Event().wait, daemon=True).start()
native, read = sys.modules["_ullage_common"].native, []
native.sample_with(lambda light, early: read.append(1) or 1000.0)
for change in (tracemalloc.start, tracemalloc.stop):
    change()
    native.next_sample(0.0)
    time.sleep(0)
    print(len(read))
"""


def test_a_program_of_several_threads_is_read_between_its_tracings_where_that_may_crash(python, script):
    ended, _ = watched([python, script(TRACED)], text=True)
    version = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:3])"], capture_output=True, check=True
    )
    waits = agent_parts.load("common").end_of_tracing_may_crash(tuple(map(int, version.stdout.split())))
    agent_parts.forget()
    assert ended.stdout == ("0\n1\n" if waits else "1\n2\n"), ended.stderr


def test_a_forked_child_traces_no_more(sites):
    sites.start(0)
    sites.after_fork()
    assert not tracemalloc.is_tracing()
    assert sites.look([].append, sites.ENOUGH) is None


def test_the_innermost_line_that_is_no_librarys_counts(sites):
    library = "/usr/lib/python3.11/copy.py", 146
    own, outer = ("/home/me/train.py", 27), ("/home/me/main.py", 3)
    assert sites._line((library, own, outer)) == "train.py:27"
    assert sites._line((library,)) == "copy.py:146"


LINKED = (
    HEARD
    + """
import time
class Node:
    def __init__(self, before):
        self.before, self.text = before, "%08d" % id(before) * 250
last = None
while not heard():
    for _ in range(200):
        last = Node(last)
    time.sleep(0.02)
while last is not None:
    last = last.before
print("done")
"""
)


NOT_TRACED = pytest.mark.skipif(
    sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2), reason="nothing is traced: gh-128679"
)


@NOT_TRACED
def test_what_grows_in_a_chain_that_no_container_holds_has_its_line(script):
    done, receiver = watched([sys.executable, script(LINKED)], text=True, until=several(1, "sites"))
    assert (done.stdout, done.stderr) == ("done\n", "")
    message = receiver.of("sites")[0]
    first = message["sites"][0]
    assert first["line"] == place_of("self.before, self.text", LINKED) and first["bytes"] > 0.9 * message["bytes"]
    # The growth and what is said to have been allocated are the same.
    assert 0.7 * message["came"] < message["bytes"] < 1.1 * message["came"]


TRACES = (
    HEARD
    + """
import _tracemalloc, sys, time
if "early" in sys.argv:
    import tracemalloc
class Node:
    def __init__(self, before):
        self.before, self.text = before, "%08d" % id(before) * 250
last = None
def grow():
    global last
    for _ in range(200):
        last = Node(last)
    time.sleep(0.02)
traced = False
while not (heard() if "early" in sys.argv else traced):
    grow()
    traced = traced or _tracemalloc.is_tracing()
import tracemalloc
print(tracemalloc.is_tracing())
tracemalloc.start(7)
while not heard():
    grow()
print(tracemalloc.is_tracing(), tracemalloc.get_traceback_limit())
tracemalloc.stop()
while last is not None:
    last = last.before
"""
)


@pytest.mark.parametrize("imported", ["early", pytest.param("meanwhile", marks=NOT_TRACED)])
def test_a_program_that_begins_to_trace_has_what_it_asks_for(script, imported):
    # While the agent traces it takes no census.
    done, receiver = watched([sys.executable, script(TRACES), imported], text=True, until=several(3, "census"))
    assert (done.stdout, done.stderr) == ("False\nTrue 7\n", "")
    assert not receiver.of("sites")
