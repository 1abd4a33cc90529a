"""What the agent weighs: estimates against sums over everything, and that no code of the program runs for them."""

import importlib.util
import json
import os
import pathlib
import py_compile
import subprocess
import sys

import pytest

from receiver import Receiver, library, watched
from test_agent_transparency import same

HEAD = f"""
import json, sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import agent_parts
w = agent_parts.common({str(library())!r}).load("weigh")
def exact(*objects):
    return sum((sys.getsizeof(o) + 15) // 16 * 16 for o in objects)
def say(**values):
    print(json.dumps(values))
"""


def told(python, script, program):
    done = subprocess.run([python, script(HEAD + program)], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


KINDS = {
    "list of str": "data = [f'{n:050d}' for n in range(50000)]; parts = data",
    "list of tuples": "data = [(float(n), f'{n:020d}') for n in range(30000)]; parts = [p for t in data for p in (t, *t)]",
    "dict": "data = {f'key {n:06d}': float(n) for n in range(30000)}; parts = [p for t in data.items() for p in t]",
    "lists in a dict": "data = {'a': [bytes([n % 256]) * 90 for n in range(30000)]}; parts = [*data['a'], data]",
    "set": "data = {f'{n:030d}' for n in range(30000)}; parts = list(data)",
    "objects with slots": "class O:\n    __slots__ = ('a', 'b')\n"
    "data = []\nfor n in range(30000):\n    o = O(); o.a = float(n); o.b = str(n) * 4; data.append(o)\n"
    "parts = [p for o in data for p in (o, o.a, o.b)]",
    "subclass of list": "class L(list):\n    def __len__(self): raise SystemExit\n"
    "data = L(f'{n:050d}' for n in range(50000)); parts = list(list.__iter__(data))",
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_estimate_is_near_the_sum_over_all_parts(python, script, kind):
    said = told(python, script, KINDS[kind] + "\nsay(weight=w.weigh(data), exact=exact(*parts))")
    assert said["weight"]["objects"] == pytest.approx(said["exact"], rel=0.05), said


def test_few_steps_weigh_samples_whole_with_the_arrays_of_another_library(python, script):
    program = """
import sys
try:
    import numpy
except ImportError:
    say(missing=True); sys.exit()
def sample(n):
    return {"key": f"{n:06d}", "jpg": numpy.frombuffer(bytearray(49152), numpy.uint8).reshape(3, 128, 128), "cls": n}
say(weight=w.weigh([sample(n) for n in range(400)], 300), missing=False)
"""
    said = told(python, script, program)
    if not said["missing"]:
        weight = said["weight"]
        assert sum(weight.values()) == pytest.approx(400 * 49600, rel=0.1), said


# Like what json.loads makes: the numbers lie below more containers than there are steps for.
NESTED = {
    "lists in dicts in lists": "data = {'id': 7, 'messages': [{'role': 'user', 'text': 'word ' * 400 + str(n)} for n in range(24)],"
    " 'events': [{'event': 'model', 'span': f'span {n}', 'tokens': [4000 + n * 300 + k for k in range(300)]} for n in range(160)]}",
    "lists of lists": "data = [[[float(a * b * c) for a in range(40)] for b in range(20)] for c in range(30)]",
    "one of a few parts is large": "data = [{'name': f'{n}', 'box': [1.5 * n, 2.5], 'points': [(n + k / 2, k + 1.0) for k in range(200)]}"
    " for n in range(50)]",
    "sizes differ": "data = [[str(k) * 5 for k in range(n * 4)] for n in range(100)]",
    "five levels": "data = {a: {b: {c: {d: [float(a * b * c * d + e) for e in range(9)] for d in 'abcd' for d in [ord(d)]}"
    " for c in range(300, 309)} for b in range(300, 308)} for a in range(300, 307)}",
}


@pytest.mark.parametrize("kind", list(NESTED))
def test_what_a_hundred_steps_do_not_reach_is_estimated(python, script, kind):
    parts = """
def every(value):
    yield value
    for part in ([*value, *value.values()] if type(value) is dict else value if type(value) in (list, tuple) else ()):
        yield from every(part)
once = {id(part): part for part in every(data)}
say(weight=w.weigh(data, 100), exact=exact(*once.values()))
"""
    said = told(python, script, NESTED[kind] + parts)
    assert said["weight"]["objects"] == pytest.approx(said["exact"], rel=0.35), said


def test_instances_below_what_is_reached_weigh_with_their_own_data_and_lead_nowhere(python, script):
    program = """
class Value:
    def __init__(self, owner, *labels):
        self.owner, self.labels, self.total = owner, tuple(zip("abcdefgh", labels)), 0.5
class Series:
    def __init__(self, owner, number):
        self.values = [Value(owner, *(f"{number * 100 + k} {label}" * 3 for label in range(8))) for k in range(40)]
class Owner:
    pass
owner = Owner()
owner.all = [str(n) for n in range(100000)]
one = Series(owner, 7)
parts, todo = {id(owner): owner}, [one]
while todo:
    part = todo.pop()
    if id(part) not in parts and not isinstance(part, type):
        parts[id(part)] = part
        todo += gc.get_referents(part)
del parts[id(owner)]
for _ in range(18):
    one = [one]
say(weight=w.weigh(one, 25), exact=exact(*parts.values()))
"""
    said = told(python, script, "import gc\n" + program)
    assert 0.6 * said["exact"] < said["weight"]["objects"] < 1.4 * said["exact"], said


def test_of_many_containers_the_heaviest_has_its_turn_early(python, script):
    program = """
class Heap:
    def _windows(self, value, kind):
        return len(value), [[(None, one) for one in value[:3]]]
light = [[[n] * 3 for n in range(500)] for _ in range(30)]
heavy = [bytes(1 << 20) for _ in range(10)]
candidates = [(one, 0, (0, 0), len(one), False) for one in (*light, heavy)]
in_time = w.by_turns(Heap(), candidates, 1e9)
say(first=in_time[0][0] is heavy, then=in_time[1][0] is light[0], all=len(in_time),
    late=[id(one) for one in w.by_turns(Heap(), candidates, 0.0)] == [id(one) for one in candidates])
"""
    said = told(python, script, program)
    assert said == {"first": True, "then": True, "all": 31, "late": True}


def test_large_pieces_stand_apart_from_objects(python, script):
    said = told(python, script, "say(weight=w.weigh([bytes(1 << 20), bytearray(3 << 20), 'ж' * (1 << 19)]))")
    assert said["weight"]["arrays"] == pytest.approx(5 << 20, rel=0.01)
    assert said["weight"]["objects"] < 1000


def test_what_belongs_to_everybody_is_not_counted_for_each(python, script):
    program = "word = 'x' * 5000\nsay(weight=w.weigh([word] * 100000), twice=w.weigh([[word + 'y'] * 2] * 2))"
    said = told(python, script, program)
    assert said["weight"]["objects"] < 1000 and said["weight"]["arrays"] == pytest.approx(800_000, rel=0.01)
    assert said["twice"]["objects"] < 6000


def test_functions_modules_and_types_are_passed_by(python, script):
    program = "import types, logging\nsay(weight=w.weigh([types, types.ModuleType, say, logging.Logger.info, print, {}.get, None]))"
    assert told(python, script, program)["weight"]["objects"] < 500


def test_it_ends_after_so_many_steps(python, script):
    program = """
data = inner = []
for _ in range(100000):
    inner.append([]); inner = inner[0]
wide = [[[[[[str(n)] * 9] * 9] * 9] * 9] for n in range(1000)]
say(deep=w.weigh(data, 50), wide=w.weigh(wide), none=w.weigh(wide, 0))
"""
    said = told(python, script, program)
    assert 0 < said["deep"]["objects"] <= (50 + 4 * 32) * 128 and said["none"]["objects"] == 0


OWN_CODE = """
def ran(*args, **kwargs):
    print("code of the program ran"); raise SystemExit(1)
class Meta(type):
    __instancecheck__ = __subclasscheck__ = __getattribute__ = ran
names = ("__getattr__", "__getattribute__", "__len__", "__iter__", "__sizeof__", "__eq__", "__hash__", "__bool__",
         "__getitem__", "__contains__", "items", "values", "keys", "__reduce__", "__dir__")
def hostile(base):
    space = {name: ran for name in names}
    space["__class__"] = space["__dict__"] = property(ran)
    return Meta("H", (base,), space)
import collections
made = [hostile(list), hostile(dict), hostile(str), hostile(object), hostile(collections.deque), hostile(set), hostile(bytes)]
holder = [object.__new__(made[3]), list.__new__(made[0]), dict.__new__(made[1]), str.__new__(made[2], "x"), set.__new__(made[5])]
list.append(holder[1], 7); dict.__setitem__(holder[2], 1, 2)
say(weight=w.weigh(holder))
import os; sys.stdout.flush(); os._exit(0)
"""


def test_no_code_of_the_program_runs(python, script):
    assert told(python, script, OWN_CODE)["weight"]["objects"] > 0


NUMPY = """
import mmap, numpy, tempfile, os
own = numpy.ones(1 << 20)
view = own[10:20]
path = os.path.join(tempfile.mkdtemp(), "x.npy")
numpy.save(path, own)
mapped = numpy.load(path, mmap_mode="r")
names = numpy.array([f"{n:040d}" for n in range(20000)], dtype=object)
lent = numpy.frombuffer(memoryview(bytearray(1 << 20)))
shared = numpy.frombuffer(mmap.mmap(-1, 1 << 20))
say(lent=w.weigh(lent), own=w.weigh(own), view=w.weigh([view, view[2:4]]), mapped=w.weigh(mapped), names=w.weigh(names), shared=w.weigh(shared),
    exact=exact(*names))
os.remove(path)
"""


def test_arrays_count_where_they_are_the_processs_own(script):
    pytest.importorskip("numpy")
    said = told(sys.executable, script, NUMPY)
    assert said["own"]["arrays"] == pytest.approx(8 << 20, rel=0.01)
    assert said["view"]["arrays"] == pytest.approx(8 << 20, rel=0.01), "all of what a view keeps alive, once"
    assert said["lent"]["arrays"] == pytest.approx(1 << 20, rel=0.01), "a buffer of this process"
    assert said["mapped"]["arrays"] == 0 and said["shared"]["arrays"] == 0
    assert said["names"]["objects"] == pytest.approx(said["exact"], rel=0.05)


POOL = """
import concurrent.futures, multiprocessing, os, sys
BUFFER = None
def work(n):
    global BUFFER
    if BUFFER is None:
        BUFFER = bytearray(b"ab") * (10 << 20)
    return n
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    if sys.argv[1] == "pool":
        with context.Pool(2) as pool:
            print(sum(pool.map(work, range(20), chunksize=1)))
    else:
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            print(sum(pool.map(work, range(20))))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("kind", ["pool", "executor"])
def test_a_pools_workers_tell_their_large_globals(python, script, kind, method):
    done, receiver = watched([python, script(POOL), kind, method])
    assert done.stdout == b"190\n" and done.stderr == b"", done.stderr
    held = receiver.of("holds")
    assert 1 <= len(held) <= 2, receiver.messages
    for message in held:
        (one,) = message["globals"]
        assert (one["name"], one["type_name"]) == ("BUFFER", "bytearray")
        assert one["bytes"] == pytest.approx(20 << 20, rel=0.01)
    assert {len(message["globals"][0]["picked"]) for message in held} == {16}
    assert len({message["globals"][0]["picked"] for message in held}) == 1, "the same in both"
    began = [
        message for message in receiver.of("process") if "pool" in message["target"] or "futures" in message["target"]
    ]
    assert {"anonymous" in message for message in began} == {method != "fork"}
    assert not any("arguments" in message for message in began)
    assert all(1 << 20 < message["anonymous"] < 100 << 20 for message in began if method != "fork")


GIVEN = """
import multiprocessing, sys
class Env:
    def __init__(self, table, seed):
        self.table, self.seed = table, seed
    def run(self, again):
        sys.exit(len(self.table) + len(again["table"]) != 8_192)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    table = [bytes([number % 256]) * 1024 for number in range(4096)]
    again = [bytes([number % 255]) * 1024 for number in range(4096)]
    one = context.Process(target=Env(table, 1).run, args=({"table": again},))
    one.start()
    one.join()
    print(one.exitcode)
"""


OF_ITS_OWN = """
import multiprocessing
class Closed:  # as cloudpickle makes a function of its closure
    def __init__(self, texts):
        self.texts = texts
    def __reduce__(self):
        return closed, (self.texts,)
class Box:
    def __init__(self, function):
        self.function = function
def closed(texts):
    return Box(lambda: len(texts))
class Worker(multiprocessing.get_context("spawn").Process):
    def __init__(self, texts, other):
        super().__init__()
        self.texts, self._other = texts, other
    def run(self):
        raise SystemExit(len(self.texts) + self._other.function() != 8192)
if __name__ == "__main__":
    one, other = ([bytes([number % by]) * 1024 for number in range(4096)] for by in (256, 255))
    worker = Worker(one, Closed(other))
    worker.start()
    worker.join()
    print(worker.exitcode)
"""


def test_what_a_processs_own_class_and_its_closures_hold_is_weighed(python, script):
    done, receiver = watched([python, script(OF_ITS_OWN)])
    assert done.stdout == b"0\n" and done.stderr == b"", done.stderr
    (began,) = receiver.of("process")
    assert sum(began["arguments"].values()) == pytest.approx(8192 * (1024 + 33 + 8), rel=0.05)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_that_was_not_forked_weighs_its_target_and_its_arguments(python, script, method):
    done, receiver = watched([python, script(GIVEN), method])
    assert done.stdout == b"0\n" and done.stderr == b"", done.stderr
    (began,) = [message for message in receiver.of("process") if message["target"].endswith("Env.run")]
    assert ("arguments" in began) == (method != "fork")
    if method != "fork":
        assert sum(began["arguments"].values()) == pytest.approx(8192 * (1024 + 33 + 8), rel=0.05)


POOL_FAILURES = """
import multiprocessing, sys
def work(how):
    if how == "raise":
        1/0
    if how == "unpicklable":
        return lambda: 0
    return how
if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
        for how in ("fine", "raise", "unpicklable", "fine"):
            try:
                print(pool.apply(work, (how,)))
            except Exception as error:
                print(type(error).__name__, str(error).partition(" at 0x")[0], error.__cause__)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_fails_as_it_does_without_the_agent(python, script, method):
    done, _ = same([python, script(POOL_FAILURES), method])
    assert b"ZeroDivisionError" in done.stdout and b"weigh" not in done.stdout


def test_the_module_is_loaded_when_it_is_needed_only(python):
    done, _ = watched([python, "-c", "import multiprocessing, sys; print('_ullage_weigh' in sys.modules)"])
    assert done.stdout == b"False\n"


def test_without_its_file_nothing_is_weighed_and_all_goes_on(python, script):
    program = "import os\nos.remove(os.path.dirname(os.environ['ULLAGE_AGENT_SOCKET']) + '/ullage_weigh.py')\n"
    done, receiver = watched([python, script(program + POOL), "pool", "fork"])
    assert done.stdout == b"190\n" and done.stderr == b""
    # The second worker may be ended before it has begun.
    assert receiver.of("holds") == [] and 1 <= len(receiver.of("process")) <= 2


LENGTHS = """
import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, RandomSampler, Sampler
COUNT = 1000
class Global:
    def __len__(self):
        return COUNT
class Named:
    COUNT = None
    def __init__(self):
        self.COUNT = 7
    def __len__(self):
        return self.COUNT
class Called:
    def __len__(self):
        return int(COUNT)
class Joining(Sampler):
    def __init__(self, *datasets):
        self.samplers = [RandomSampler(one) for one in datasets] + [RandomSampler(Global(), replacement=True)]
        self.itself, self.trainer = self, Trainer()
    __len__ = __bool__ = __iter__ = None
class Trainer:
    def __init__(self):
        self.loader = DataLoader(Global(), shuffle=True)
    def __len__(self):
        return 5
def listed(dataset, **sampler):
    return w.index_list(DataLoader(dataset, **sampler))
ranks = DistributedSampler(Called(), num_replicas=3, rank=0)
say(lengths=[w.length_of(one) for one in (Global(), Named(), Called())],
    lists=[listed(Global(), shuffle=True), listed(Called(), shuffle=True), listed(Called(), sampler=ranks)],
    joined=listed(Global(), batch_sampler=Joining(Global(), [0] * 70)), apart=listed(Trainer()))
"""


def test_a_list_of_indices_is_as_long_as_torch_has_counted_or_a_global_says(script):
    pytest.importorskip("torch")
    said = told(sys.executable, script, LENGTHS)
    assert said["lengths"] == [1000, 7, None], "what is called is code of the program's"
    # torch has asked the dataset itself, and pads to a multiple of the ranks.
    assert said["lists"] == [1000, None, 1002]
    assert said["joined"] == 1070, "of each sampler that another one draws from"
    assert said["apart"] is None, "what is sampled may have loaders of its own"


def test_a_part_whose_byte_code_was_cut_off_is_compiled_of_its_source(script):
    program = script("""
import multiprocessing
def work(rows):
    pass
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work, args=(list(range(1000)),))
    process.start()
    process.join()
""")
    with Receiver() as receiver:
        source = receiver.directory / "ullage_weigh.py"
        cached = importlib.util.cache_from_source(source)
        py_compile.compile(source, cached)
        os.truncate(cached, 20)
        subprocess.run([sys.executable, program], env=receiver.environment(), check=True)
    assert [message["arguments"] for message in receiver.of("process")]
