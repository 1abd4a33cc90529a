"""What the agent says of a Python's memory in passing, and that it stays unseen while it does."""

import mmap
import pathlib
import subprocess
import sys
import types

import pytest

import agent_parts
import receiver
from receiver import HEARD, several, watched
from test_agent_transparency import same

MIB = 1 << 20


def memory_module():
    agent_parts.forget()
    return agent_parts.common(receiver.library()).load("memory")


def figures(receiver):
    return [message["figures"] for message in receiver.of("memory")]


def test_growth_goes_on_after_three_looks_or_where_looks_are_rare_after_one(monkeypatch):
    memory = memory_module()
    now = [100.0]
    monkeypatch.setattr(memory, "monotonic", lambda: now[0])
    try:
        for apart, expected in ((1.0, [False, False, False, True]), (6.0, [False, False, True, True])):
            memory._growth, heard = None, []
            for number in range(4):
                memory._grows(100 * MIB * (number + 1), 0, light=False)
                heard.append(memory.rises())
                now[0] += apart
            assert heard == expected, apart
        memory._growth = None
        memory._grows(100 * MIB, 0, light=False)
        now[0] += 60.0
        memory._grows(100 * MIB, 0, light=False)
        assert not memory.rises(), "nothing came"
    finally:
        agent_parts.forget()


def test_a_program_that_rose_once_is_at_rest_some_time_later(monkeypatch):
    memory = memory_module()
    now = [100.0]
    monkeypatch.setattr(memory, "monotonic", lambda: now[0])
    try:
        memory._growth = None
        for resident, lately in ((100, False), (110, False), (110, True), (110, False), (120, True), (130, True)):
            memory._grows(resident * MIB, 0, light=False)
            assert memory.rose_lately() == lately, now
            now[0] += 6.0
        assert memory.rises() and memory.rose_lately()
        now[0] += 6.0
        assert memory.rises() and not memory.rose_lately()
    finally:
        agent_parts.forget()


def test_shared_memory_that_rises_is_seen_beside_private_memory_that_swings():
    memory = memory_module()
    try:
        for number in range(8):
            memory._grows((100 + 200 * (number % 2)) * MIB, 10 * number * MIB, light=False)
        assert memory.rises() and not memory._goes_on(memory._growth)
        heard = []
        memory._census = types.SimpleNamespace(
            due=lambda grown, _now: heard.append(grown) or False,
        )
        memory._take_census(None, 0, 0.0)
        assert heard == [70 * MIB], "of what rises only"
    finally:
        agent_parts.forget()


def test_where_the_program_is_is_told_when_much_has_come():
    memory = memory_module()
    try:
        heard = []
        for resident in (10 * MIB, 100 * MIB, 110 * MIB, 130 * MIB, 140 * MIB, 50 * MIB, 80 * MIB):
            memory._say_work(lambda said, resident=resident: heard.append((resident // MIB, said)), resident)
        assert [at for at, _ in heard] == [100, 130, 80], "less is not worth it, and what fell may rise again"
        (stack,) = [one for one in heard[0][1]["stacks"] if any(" test_where_the_program_is" in each for each in one)]
        if stack[-1].endswith("()"):
            assert stack.pop().endswith(" memory._say_work()"), "what is called that is of C, where that can be known"
        place, function = stack[-1].rsplit(" ", 1)
        assert function == "test_where_the_program_is_is_told_when_much_has_come"
        assert place.rpartition(":")[0].endswith("test_agent_memory.py") and len(stack) <= memory.FRAMES
        heard.clear()
        memory._say_work(heard.append, 10_000 * MIB)
        memory._say_work(heard.append, 10_100 * MIB)
        assert len(heard) == 1, "of much that is there, little that came is not told"
    finally:
        agent_parts.forget()


def test_shared_memory_is_read_apart():
    memory = memory_module()
    try:
        private, shared = memory._resident()
        assert private > MIB and shared < private
        with mmap.mmap(-1, 32 * MIB, flags=mmap.MAP_SHARED) as mapped:
            mapped.write(b"x" * (32 * MIB))
            assert 32 * MIB <= memory._resident()[1] - shared < 34 * MIB
        private = memory._resident()[0]  # what the test wrote from may not be given back
        memory._RESIDENT = (b"RssAnon:", b"RssNever:")  # as Linux before 4.5 has it
        assert abs(memory._resident()[0] - private) < 8 * MIB and memory._resident()[1] == 0
    finally:
        agent_parts.forget()


GROWN_THEN_SLEEPS = """
import time
kept = [bytes(20_000) for _ in range(6000)]
while not heard():
    time.sleep(0.1)
"""


def test_large_objects_are_told_while_the_program_sleeps(python, script):
    # All is there before the first sleep; a slow machine is walked while it still comes.
    walked = several(1, "memory", figures=lambda one: "tensors" in one and one["malloc_used"] > 100 * MIB)
    _, receiver = watched([python, script(HEARD + GROWN_THEN_SLEEPS)], until=walked)
    last = [said for said in figures(receiver) if "tensors" in said][-1]
    assert last["malloc_used"] > 100 * MIB and last["tensors"] == 0
    assert 0.7 * last["malloc_used"] < last["python_large"] <= 1.1 * last["malloc_used"]


def test_a_short_or_small_program_says_nothing(python, script):
    _, receiver = watched([python, "-c", "kept = list(range(1000))"])
    assert figures(receiver) == []


def test_a_collection_is_a_moment_too(python, script):
    program = HEARD + "import gc\nwhile not heard():\n    gc.collect(0)"
    _, receiver = watched([python, script(program)], until=several(1, "memory"))
    assert figures(receiver)


COLLECTS = """
import gc, time
class Node:
    pass
gc.disable()
while not heard():
    time.sleep(0.01)
pins = []
for number in range(4000):
    node = Node()
    node.me, node.data = node, bytes(20_000)
    pins.append(bytes(2000))
del node
gc.collect()
"""


def test_after_much_was_collected_a_look_says_what_is_kept_of_it(python, script):
    _, receiver = watched([python, script(HEARD + COLLECTS)], until=several(1, "memory"))
    last = figures(receiver)[-1]
    assert last["malloc_free"] > 60 * MIB and last["malloc_used"] < 30 * MIB


SLEEPS = """
import inspect, pickle, time, types
print(repr(time.sleep), time.sleep.__name__, time.sleep.__module__, time.sleep.__doc__[:20])
print(isinstance(time.sleep, types.BuiltinFunctionType), inspect.isbuiltin(time.sleep), callable(time.sleep))
assert pickle.loads(pickle.dumps(time.sleep)) is time.sleep
class Naps:
    nap = time.sleep
Naps().nap(0)
try:
    time.sleep(-1)
except ValueError:
    import traceback
    traceback.print_exc()
time.sleep("x")
"""


def test_sleep_is_what_it_was(python, script):
    same([python, script(SLEEPS)])


def test_a_forked_child_speaks_for_itself(python, script):
    program = (
        "import time\nkept = [bytes(20_000) for _ in range(4000)]\n"
        "while not heard(0):\n    time.sleep(0.01)\npid = os.fork()\n"
        "if not pid:\n    kept += [bytes(20_000) for _ in range(1000)]\n"
        "    while not heard(1):\n        time.sleep(0.01)\n    os._exit(0)\nos.waitpid(pid, 0)"
    )

    def speakers(count):
        return lambda messages: len({one["pid"] for one in messages if one["kind"] == "memory"}) == count

    done, receiver = watched([python, script(HEARD + program)], until=[speakers(1), speakers(2)])
    assert done.returncode == 0 and speakers(2)(receiver.messages)


RESTS = """
import mmap
from _ullage_common import native
def due():
    native.next_sample(0.0)
    return native.is_due()
kept, before = bytearray(b"x") * (8 << 20), due()
if os.fork() == 0:
    rests = due()
    room = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(0, len(room), 4096):
        room[page] = 1
    os.write(1, f"{before} {rests} {due()}\\n".encode())
    os._exit(0)
os.wait()
"""


def test_a_forked_child_is_looked_into_once_its_own_memory_has_risen(python, script):
    done, _ = watched([python, script(HEARD + RESTS)], text=True)
    assert (done.stdout, done.stderr) == ("True False True\n", "")


INFO = b"""<malloc version="1">
<heap nr="0">
<sizes>
  <size from="33" to="48" total="480" count="10"/>
  <unsorted from="20000" to="20480" total="200000" count="10"/>
</sizes>
<total type="fast" count="10" size="480"/>
<total type="rest" count="11" size="600000"/>
<system type="current" size="1000000"/>
<system type="max" size="1000000"/>
</heap>
<heap nr="1">
<sizes>
</sizes>
<total type="fast" count="0" size="0"/>
<total type="rest" count="1" size="50000"/>
<system type="current" size="135168"/>
</heap>
<total type="fast" count="10" size="480"/>
<total type="rest" count="12" size="650000"/>
<total type="mmap" count="2" size="3000000"/>
<system type="current" size="1135168"/>
</malloc>
"""


def test_malloc_info_is_read():
    said = memory_module().read_malloc_info(INFO)
    free = 480 + 600_000 + 50_000
    holes = 200_000 - 10 * (4096 + 48)
    top = 600_480 - 200_480 - 4096
    assert said == {
        "malloc_used": 1_135_168 - free,
        "malloc_mapped": 3_000_000,
        "malloc_free": free,
        "malloc_trimmable": holes + top,
        "malloc_free_main": 600_480,
        "malloc_arenas": 2,
    }


WALKS = """
import gc
memory = agent_parts.common({library!r}).load("memory")
gc.collect()
before, figures = {{"blocks": 1}}, {{"blocks": 1}}
memory._walk(before, 0.0)
kept = [{{"x": bytes(20_000)}} for _ in range(1000)]
memory._walk(figures, 0.0)
print(figures["python_large"] - before["python_large"])
"""


def test_walks_of_dicts_that_the_collector_does_not_list(script):
    # In a process of its own: what other tests have left would be most of the sample.
    tests = str(pathlib.Path(agent_parts.__file__).parent)
    program = f"import sys; sys.path.insert(0, {tests!r}); import agent_parts\n" + WALKS.format(
        library=str(receiver.library())
    )
    done = subprocess.run([sys.executable, script(program)], check=True, capture_output=True, text=True)
    assert 18 * MIB < int(done.stdout) < 60 * MIB


PARTS = """
import gc, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import agent_parts
memory = agent_parts.common(sys.argv[2]).load("memory")

def walked():
    figures = {"blocks": 1}
    memory._walk(figures, 0.0)
    return figures["python_large"]
"""

WRITTEN = """
def written():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty:"))
"""

SHARED = """
class Record:
    def __init__(self, number):
        self.name, self.tags = "record %d" % number, [number]

rows = [Record(number) for number in range(200_000)]
if os.fork() == 0:
    gc.collect()  # writes into all that the collector lists, but not into the text and the numbers
    before = written(), written()
    walked()
    print(written() - before[1], flush=True)
    os._exit(0)
os.wait()
"""


def test_a_walk_in_a_forked_child_writes_to_nothing_that_it_shares(python, script):
    done = subprocess.run(
        [python, script(PARTS + WRITTEN + SHARED), agent_parts.__file__, receiver.library()],
        capture_output=True,
        text=True,
    )
    # Of 2,000 objects that stand for all, each page with a number that one refers to would be copied.
    assert done.stderr == "" and int(done.stdout) < 1000


OLD = """
import random
native = memory.common.native
def search():
    answer = native.unreachable(gc.get_threshold(), 1 << 16, 4000, (set,), 4000, 10**12)
    return len(answer[2]), answer[3]
class Node:
    pass
gc.disable()
rows = [[number] for number in range(20_000)]
for seed in range(20):
    chance = random.Random(seed)
    gc.collect()
    nodes = [Node() for _ in range(200)]
    for node in nodes:
        node.others = [chance.choice(nodes) for _ in range(chance.randrange(3))]
        node.name = (chance.random(), node) if chance.random() < 0.3 else {"is": node}
    held = chance.sample(nodes, chance.randrange(10))
    gc.collect(seed % 2)
    del nodes, node
    alive = lambda: sum(type(one) is Node for one in gc.get_objects())
    found, before = search(), alive()
    gc.collect()
    print(before - alive() <= found[0] == found[1], before - alive() > 0, flush=True)
    del held
if os.fork() == 0:
    before = written(), written()
    search()
    print(written() - before[1] < 1500, flush=True)
    os._exit(0)
os.wait()
"""


def test_garbage_of_all_generations_is_found_and_nothing_shared_written(python, script):
    program = script(PARTS + WRITTEN + OLD)
    done = subprocess.run([python, program, agent_parts.__file__, receiver.library()], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == 20 * "True True\n" + "True\n"


INHERITED = """
walks, told, walk = [], [], memory._walk
memory.SAMPLE = 10_000_000  # each object: of some, the large one would be among them by chance
memory._walk = lambda figures, now: (walks.append(1), walk(figures, now))
memory.common.native.large(gc.get_threshold(), (), 1, (), (), 1)  # what loading takes is there before the first look
memory.common.load("calls")
memory.look(told.append)
if os.fork() == 0:
    walks.clear()
    memory._after_fork()
    memory.look(told.append)
    if os.fork() == 0:  # by one that has walked no more than this one
        memory._walked = {name: memory._walked[name] for name in ("anonymous", "blocks")}
        memory._after_fork()
        memory.look(told.append)
        os._exit(0)
    assert os.wait()[1] == 0
    kept = bytearray(b"x") * GROWTH
    memory.look(told.append)
    parent, first, *last = [one["figures"]["python_large"] for one in told if one["kind"] == "memory"]
    print(len(walks), first - parent, last and last[0] - first > 30 << 20, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize(("growth", "walked"), [(1, "0 0 []"), (40 << 20, "1 0 True")])
def test_a_forked_child_walks_only_after_its_own_memory_has_moved(python, script, growth, walked):
    program = script(PARTS + INHERITED.replace("GROWTH", str(growth)))
    done = subprocess.run([python, program, agent_parts.__file__, receiver.library()], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == walked + "\n"


UNSEEN = """
walks, told = [], []
memory._walk = lambda figures, now: walks.append(1)
memory.common.native.large(gc.get_threshold(), (), 1, (), (), 1)  # what loading takes is there before the fork
if os.fork() == 0:
    memory._after_fork()
    kept = bytearray(b"x") * GROWTH
    memory.look(told.append)
    memory.look(told.append)
    print(len(walks), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize(("growth", "walks"), [(1, "0"), (40 << 20, "2")])
def test_the_child_of_one_that_never_looked_walks_over_what_is_its_own_only(python, script, growth, walks):
    program = script(PARTS + UNSEEN.replace("GROWTH", str(growth)))
    done = subprocess.run([python, program, agent_parts.__file__, receiver.library()], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == walks + "\n"


WAITING = """
gc.disable()
all_of_them = [[] for _ in range(300_000)]
numbers = {id(one): number for number, one in enumerate(all_of_them)}
some, count, whole = memory.common.newest(0, 1000)
places = [numbers[id(one)] for one in some]
middle = 300_000 - (1 << 16)
print(count, whole, len(some), places == sorted(places), middle - 510 < min(places) < max(places) < middle + 510)
gc.collect()
later = [[] for _ in range(2000)]
some, count, whole = memory.common.newest(0, 100)
print(2000 <= count < 2100, whole, len(some))
"""


def test_of_a_heap_that_waits_for_the_collector_few_are_handed_out(python, script):
    program = script(PARTS + WAITING)
    done = subprocess.run([python, program, agent_parts.__file__, receiver.library()], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "131072 False 1000 True True\nTrue True 100\n"


UNFINISHED = """
held = []

def items():
    for number in range(10):  # for so many CPython makes room at first
        yield [number]
    held.append(memory.common.newest(0, 1 << 20)[0])
    kinds = (tuple,), 1 << 20
    held.append(memory.common.standing(*kinds, 1 << 20))
    held.append(memory.common.standing((), 1, 1, (tuple,), 1, 1 << 20))
    held.append(memory.common.native.large(gc.get_threshold(), *kinds, (tuple, tuple.__sizeof__), (), 1))
    yield [10]

done = tuple([n] for n in range(3))
twice = [done]  # so that it is known to be done
assert len(tuple(items())) == 11
tuples = [sum(type(one) is tuple for one in found) for found in (held[0], held[1][0], held[2][4], held[3][0])]
print(min(tuples) > 0 or tuples)
"""


def test_a_tuple_in_the_making_is_handed_to_nobody(python, script):
    program = script(PARTS + UNFINISHED)
    done = subprocess.run([python, program, agent_parts.__file__, receiver.library()], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == "True\n"


INTERPRETERS = """
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

frames = memory.common.native.frames
assert frames()[threading.get_ident()].f_globals is globals()
(read, write), (ended, end) = os.pipe(), os.pipe()
code = f"import os\\ndef work(): os.write({write}, b'x'); os.read({ended}, 1)\\nwork()"
other = interpreters.create()
thread = threading.Thread(target=interpreters.run_string, args=(other, code))
thread.start()
os.read(read, 1)
print(frames())
os.write(end, b"x")
thread.join()
interpreters.destroy(other)
print(len(frames()))
"""


def test_threads_of_another_interpreter_get_no_frames(python, script):
    program = script(PARTS + INTERPRETERS)
    done = subprocess.run([python, program, agent_parts.__file__, receiver.library()], capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "{}\n1\n")


MIDST = """
import weakref, threading, types

class Slots:
    __slots__ = ("one", "__weakref__")

class Kind(type):
    def __sizeof__(self):
        raise SystemExit("code of the program ran")

class Odd(dict, metaclass=Kind):
    def __len__(self):
        raise SystemExit("code of the program ran")
    __sizeof__ = __iter__ = __len__

class Ends:
    def __del__(self):
        sizes.append(walked())

def halves():
    for number in range(1000):
        if number in (1, 500):
            sizes.append(walked())
        yield number

def running():
    local = [bytes(600)] * 300
    yield walked()

async def waits():
    return walked()

sizes = []
slots, empty = Slots(), Odd()
odd = [Odd(a=1) for _ in range(1000)], weakref.ref(slots), types.SimpleNamespace(one=slots), Slots.one
tuple(halves()), list(halves()), set(halves()), dict.fromkeys(halves())
sorted(range(50), key=lambda one: sizes.append(walked()) or one)
sizes.append(next(running()))
try:
    waits().send(None)
except StopIteration as end:
    sizes.append(end.value)
try:
    raise KeyError(list(range(1000)))
except KeyError as error:
    kept = error
    sizes.append(walked())
del [Ends()][0]
loop = []
loop.append(loop)
deep = []
for _ in range(100_000):
    deep = [deep]
threads = [threading.Thread(target=lambda: [sizes.append(walked()) for _ in range(20)]) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(200):
    made = [{number: str(number) for number in range(300)} for _ in range(20)]
for thread in threads:
    thread.join()
while deep:
    deep = deep.pop()
print(len(sizes), min(sizes) > 0)
"""


def test_a_walk_passes_by_what_is_half_there(python, script):
    done = subprocess.run(
        [python, script(PARTS + MIDST), agent_parts.__file__, receiver.library()], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "142 True\n", "")


class Clock:
    """Stands for the processor's time of a thread: goes on where it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_what_reading_traces_took_puts_no_look_off():
    memory, said, clock = memory_module(), [], Clock()
    memory.thread_time = clock

    def reads(_send, _private):
        clock.now += 1000.0

    memory._tracing = types.SimpleNamespace(look=reads)
    again = memory.look(said.append, light=True)
    assert clock.now == 1000.0 and [message["kind"] for message in said] == ["work", "memory"]
    assert again < 1 / memory.common.BUDGET


def test_a_look_is_followed_by_as_long_without_one_as_the_budget_wants():
    """What looks cost of a program's time is bounded by this alone; benches/cost.py measures it."""
    memory, clock = memory_module(), Clock()
    memory.thread_time = clock

    def slow(_figures):
        clock.now += 1000.0

    memory._malloc = slow
    assert memory.common.BUDGET <= 0.01
    assert memory.look([].append, light=True) == 1000.0 / memory.common.BUDGET


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("/job/country/tax_7.py", True),
        ("/job/.venv/lib/python3.11/site-packages/net/tax_7.py", False),
        ("/opt/deps/net/tax_7.py", False),
        (None, False),
    ],
)
def test_what_comes_with_modules_is_growth_where_they_are_the_programs_own(monkeypatch, file, counts):
    memory = memory_module()
    main = types.ModuleType("__main__")
    main.__file__ = "/job/main.py"
    monkeypatch.setattr(sys, "modules", {**sys.modules, "__main__": main})
    growth, resident = memory._Growth(100 << 20), 100 << 20
    for look in range(5):
        for number in range(24):
            module = types.ModuleType(f"{look}_{number}_tax")
            module.__file__ = file
            sys.modules[module.__name__] = module
        resident += 8 << 20
        growth.add(resident, light=False)
    assert (growth.last - growth.first, growth.rising) == ((40 << 20, 5) if counts else (0, 0))


def test_neither_a_folder_that_is_gone_nor_a_package_without_a_file_is_a_hindrance(monkeypatch):
    def gone():
        raise FileNotFoundError

    memory, main = memory_module(), types.ModuleType("__main__")
    main.__file__ = "/job/main.py"
    monkeypatch.setattr(sys, "modules", {**sys.modules, "__main__": main, "rules": types.ModuleType("rules")})
    monkeypatch.setattr(memory.posix, "getcwd", gone)
    for number in range(24):
        module = types.ModuleType(f"rules.{number}")
        module.__file__ = f"/job/rules/{number}.py"
        sys.modules[module.__name__] = module
    assert memory._of_libraries(24) == 0
    del sys.modules["__main__"].__file__
    assert memory._of_libraries(24) == memory.LIBRARY


def test_modules_that_need_not_be_gone_to_are_not_written_to(monkeypatch):
    memory, first, last = memory_module(), types.ModuleType("first"), types.ModuleType("last")
    between = {f"library.{n}": types.ModuleType("library") for n in range(memory.LIBRARY)}
    monkeypatch.setattr(sys, "modules", {**sys.modules, "first": first, **between, "last": last})
    asked = []
    monkeypatch.setattr(
        memory, "_is_own", lambda name, folders, own=memory._is_own: asked.append(name) or own(name, folders)
    )
    assert memory._of_libraries(len(sys.modules)) == memory.LIBRARY
    assert "first" not in asked and asked[0] == "last"


def test_while_another_thread_imports_and_fails_to_no_module_is_lost(monkeypatch):
    memory, asked = memory_module(), []
    monkeypatch.setattr(sys, "modules", {f"own_{n}": types.ModuleType("own") for n in range(1000)})

    def imports(name, folders):
        asked.append(name)
        sys.modules[f"newer_{len(asked)}"] = types.ModuleType("newer")
        del sys.modules[f"newer_{len(asked)}"]
        return True

    monkeypatch.setattr(memory, "_is_own", imports)
    assert memory._of_libraries(1000) == 0 and len(set(asked)) == 1000


def test_parts_of_the_agent_are_no_library(monkeypatch):
    memory = memory_module()
    monkeypatch.setattr(
        sys, "modules", {**sys.modules, **{f"_ullage_{n}": types.ModuleType("part") for n in range(24)}}
    )
    assert memory._of_libraries(24) == 0


def test_the_name_of_a_module_that_is_no_plain_text_is_not_asked_for(monkeypatch):
    class Name(str):
        __slots__ = ("asked",)

        def __hash__(self):
            assert not getattr(self, "asked", False)
            return str.__hash__(self)

    memory, name = memory_module(), Name("odd")
    monkeypatch.setattr(sys, "modules", {**sys.modules, name: types.ModuleType("odd")})
    name.asked = True
    assert memory._of_libraries(24) > 0
