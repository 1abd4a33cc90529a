"""`ullage.share`: what comes back is what went in, read-only, one mapping, and picklable in a few bytes."""

import collections
import concurrent.futures
import copy
import dataclasses
import math
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import textwrap
from multiprocessing.reduction import ForkingPickler

import pytest

import ullage
from ullage import _native
from ullage.errors import Error, NotShareable

np = pytest.importorskip("numpy")


@dataclasses.dataclass
class Sample:
    path: str
    label: int


@dataclasses.dataclass(frozen=True)
class Box:
    corner: tuple
    size: float


Point = collections.namedtuple("Point", "x y")


class MyList(list):
    pass


def passed_on(shared):
    """As a queue passes it on."""
    return pickle.loads(ForkingPickler.dumps(shared))


RECORDS = [{"path": f"images/{i:08d}.jpg", "label": i % 1000, "caption": "ein Bild " * (i % 5)} for i in range(5000)]

SAME = [
    [],
    [None, True, False, 0, 1, -1, 127, 128, -128, -129, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 2**63, -(10**40)],
    [1, 2, 3, 10**12],
    [1, 2, "three"],
    [1, 2, 10**30],
    [0.0, -0.5, math.inf, 1e300],
    [1.5, 2],
    [1 + 2j, -0j],
    ["", "ascii", "Größe", "Ω≈ç", "日本語", "🙂🙃", "\ud800", "a\0b", "x" * 100_000],
    [b"", b"bytes", b"\xff" * 5000],
    [(), (1,), (1, ("two", (3.0,))), tuple(range(65))],
    [[1], [], [[2.5], ["x"]], [[[]]]],
    RECORDS[:10],
    [{"a": 1}, {"a": 2}, {"b": 3}, {"a": 4, "b": 5}, {"b": 6, "a": 7}, {}],
    [{"meta": {"size": [1, 2], "tags": ["x", "y"]}, "id": i} for i in range(20)],
    [{1: "one", "two": 2}, {None: 1}],
    [{f"key {i}": i for i in range(100)}],
    {"train": [1, 2, 3], "test": ["a"], "n": 3},
    {i: str(i) for i in range(1000)},
    {(1, "a"): 1, b"x": 2, None: 3, 2.5: 4, -7: 5},
    {},
    (),
    (1, "two", [3]),
    tuple(range(1000)),
    [Point(1, 2), Point("a", None)],
]


@pytest.mark.parametrize("data", SAME, ids=lambda data: repr(data)[:40])
def test_reads_back_what_was_packed(data):
    shared = ullage.share(data)
    assert isinstance(shared, ullage.Shared)
    assert len(shared) == len(data)
    assert shared == data and data == shared
    assert not shared != data
    plain = shared.to_python()
    assert plain == data and type(plain) is type(data)
    assert [type(item) for item in plain] == [type(item) for item in data]


def test_rows_without_an_end_in_sight_need_wide_places():
    data = [[i, str(i)] for i in range(10_000)]
    shared = ullage.share(data)
    assert shared == data and shared[9_999][1] == "9999"


def test_sequence():
    data = [str(i) for i in range(100)]
    shared = ullage.share(data)
    assert isinstance(shared, collections.abc.Sequence)
    assert shared[-1] == "99" and shared[0] == "0"
    for part in (slice(None), slice(10, 20), slice(None, None, -1), slice(90, 10, -7), slice(5, 5), slice(-3, None)):
        assert shared[part] == data[part], part
        assert shared[part].to_python() == data[part]
        assert shared[part][1:] == data[part][1:]
        assert passed_on(shared[part]) == data[part]
    assert list(shared) == data and list(reversed(shared)) == data[::-1]
    assert "42" in shared and "x" not in shared
    assert shared.index("42") == 42 and shared.count("42") == 1
    with pytest.raises(ValueError):
        shared.index("42", 43)
    assert shared.__getitems__([3, -1, 3]) == ["3", "99", "3"]
    for wrong in (100, -101):
        with pytest.raises(IndexError):
            shared[wrong]
    with pytest.raises(TypeError):
        shared["0"]
    assert shared[np.int64(7)] == "7"
    assert repr(shared) == "shared(['0', '1', '2', '3', '4', '5', ... 100 items])"
    assert repr(ullage.share((1, "x"))) == "shared((1, 'x'))"
    assert shared != data[:-1] and shared != tuple(data) and not shared == 5


def test_nothing_can_be_written():
    shared = ullage.share({"rows": [{"a": 1, "b": [1, "x"]}], "list": [1, 2]})
    record = shared["rows"][0]
    assert isinstance(record, dict)
    for change in (
        lambda: record.__setitem__("a", 2),
        lambda: record.__delitem__("a"),
        lambda: record.update(a=2),
        lambda: record.pop("a"),
        lambda: record.popitem(),
        lambda: record.setdefault("c", 1),
        lambda: record.clear(),
        lambda: record.__ior__({"c": 1}),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change()
    for target in (shared, shared["list"], record["b"], shared["rows"]):
        with pytest.raises(TypeError):
            target[0] = 1
        with pytest.raises(TypeError):
            del target[0]
    assert shared == {"rows": [{"a": 1, "b": [1, "x"]}], "list": [1, 2]}
    for one in (record.copy(), copy.copy(record), copy.deepcopy(record), passed_on(record)):
        assert type(one) is dict and one == record


def test_dict():
    data = {"a": 1, "b": [1], 3: "three", 2.5: None, True: "yes"}
    shared = ullage.share(data)
    assert isinstance(shared, collections.abc.Mapping)
    assert list(shared) == list(data) and list(shared.keys()) == list(data)
    assert [value for value in shared.values()][0] == 1 and dict(shared.items())["a"] == 1
    assert shared[1] == "yes" and shared[1.0] == "yes" and shared[3.0] == "three" and shared[np.int64(3)] == "three"
    assert "a" in shared and "z" not in shared and shared.get("z") is None and shared.get("z", 5) == 5
    with pytest.raises(KeyError):
        shared["z"]
    with pytest.raises(TypeError):
        shared[[1]]
    assert repr(ullage.share({"a": 1})) == "shared({'a': 1})"
    assert shared != {"a": 1} and copy.deepcopy(shared) is shared


def test_dict_of_many_keys_finds_each():
    data = {f"key-{i}": i for i in range(50_000)} | {i: -i for i in range(50_000)}
    shared = ullage.share(data)
    assert all(shared[key] == value for key, value in data.items())
    assert "key-50000" not in shared and 50_000 not in shared


def test_dataclasses_and_named_tuples():
    data = [Sample("a", 1), Sample("b", 2), Box((1, 2), 0.5), Point(1, [2])]
    shared = ullage.share(data)
    assert shared == data and data == list(shared)
    sample, box, point = shared[0], shared[2], shared[3]
    assert isinstance(sample, Sample) and sample.path == "a" and type(point) is Point
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.path = "c"
    with pytest.raises(dataclasses.FrozenInstanceError):
        box.size = 1.0
    changed = dataclasses.replace(sample, label=7)
    assert changed == Sample("a", 7) and type(changed) is Sample
    again = pickle.loads(pickle.dumps(sample))
    assert type(again) is Sample and again == sample
    assert hash(box) == hash(data[2])
    assert type(shared.to_python()[0]) is Sample


ARRAYS = [
    np.arange(12.0).reshape(3, 4),
    np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1],
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.array(5, dtype=np.int16),
    np.zeros((0, 3)),
    np.array(["a", "Größe"]),
    np.array([b"x", b"yz"]),
    np.array([True, False]),
    np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
    np.arange(3, dtype=">i4"),
    np.array([1 + 2j], dtype=np.complex64),
    np.ones(5000, dtype=np.float16),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays(array):
    shared = ullage.share([array, {"x": array}, [array, array], "end"])
    for one in (shared[0], shared[1]["x"], shared[2][1], shared.to_python()[0]):
        assert one.dtype == array.dtype and one.shape == array.shape
        np.testing.assert_array_equal(one, array)
    assert shared[3] == "end"
    own = ullage.share(array)
    assert isinstance(own, ullage.Shared) and isinstance(own, np.ndarray)
    np.testing.assert_array_equal(own, array)
    again = passed_on(own)
    np.testing.assert_array_equal(again, array)
    assert type(own.to_python()) is np.ndarray
    assert len(ForkingPickler.dumps(own)) < 600


def test_a_write_to_an_array_stays_in_its_process():
    shared = ullage.share([np.zeros(1000), np.ones(3)])
    shared[0][5] = 7.0
    assert shared[0][5] == 7.0
    pid = os.fork()
    if pid == 0:
        shared[0][6] = 8.0
        os._exit(0)
    os.waitpid(pid, 0)
    assert shared[0][6] == 0.0


def test_arrays_keep_the_pages():
    array = ullage.share([np.arange(10_000), 1])[0]
    assert array.sum() == 49_995_000


def test_scalars_of_numpy():
    data = [np.float32(1.5), np.int64(-3), np.bool_(True), np.str_("text"), np.datetime64("2020-01-01")]
    shared = ullage.share(data)
    for one, other in zip(shared, data):
        assert one == other and type(one) is type(other)


class Holder:
    pass


@pytest.mark.parametrize(
    "make, way, advice",
    [
        (
            lambda: [1] * 17 + [{"meta": {"handle": open(os.devnull)}}],
            '[17]["meta"]["handle"]',
            "open it in each worker",
        ),
        (lambda: [Box(corner=(1, lambda: 1), size=1.0)], "[0].corner[1]", "keep functions"),
        (lambda: {"a": [{1, 2}]}, '["a"][0]', "sorted list"),
        (lambda: [pathlib.Path("x"), 1], "[0]", "str(path)"),
        (lambda: [bytearray(b"x")], "[0]", "bytes"),
        (lambda: [iter([])], "[0]", "list(...)"),
        (lambda: [Holder()], "[0]", "dataclass"),
        (lambda: [np.array([None])], "[0]", "Python objects"),
        (lambda: {frozenset(): 1}, "[frozenset()]", "a key of type frozenset"),
        (lambda: [ullage.share([1])], "[0]", "shared already"),
        (lambda: [collections.Counter()], "[0]", "dict(...)"),
        (lambda: Holder(), "data", "dataclass"),
        (lambda: "text", "data", "in a list"),
    ],
)
def test_says_which_part_cannot_be_shared(make, way, advice):
    with pytest.raises(NotShareable) as caught:
        ullage.share(make())
    assert way in str(caught.value) and advice in str(caught.value)


def test_cycles_and_depth():
    ring = [1, {"again": None}]
    ring[1]["again"] = ring
    with pytest.raises(NotShareable, match=r'data\[1\]\["again"\] cannot be shared: it contains itself'):
        ullage.share(ring)
    deep = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(NotShareable, match="nested deeper"):
        ullage.share(deep)


def test_a_local_class_is_refused():
    @dataclasses.dataclass
    class Local:
        x: int

    with pytest.raises(NotShareable, match="top of a module"):
        ullage.share([Local(1)])


@dataclasses.dataclass
class Meddler:
    value: object = dataclasses.field(default=None)

    def __getattribute__(self, name):
        if name == "value":
            victim = object.__getattribute__(self, "value")
            victim.clear()
            return 1
        return object.__getattribute__(self, name)


def test_a_source_that_changes_meanwhile():
    rows = [1, "x"]
    rows.append(Meddler(rows))
    with pytest.raises(NotShareable, match="changed while it was packed"):
        ullage.share(rows)
    entries = {"a": 1}
    entries["b"] = Meddler(entries)
    with pytest.raises(NotShareable, match="changed while it was packed"):
        ullage.share(entries)


def test_what_is_met_twice_is_written_once():
    big = np.zeros(1 << 20, dtype=np.uint8)
    text = "x" * (1 << 20)
    shared = ullage.share([{"a": big, "t": text} for _ in range(50)])
    assert shared.nbytes < 3 << 20
    assert shared[49]["a"].nbytes == 1 << 20 and shared[49]["t"] == text
    inner = [1, "a", None]
    again = ullage.share([inner, inner, 5] + [{"k": inner}] * 3 + [0.5])
    assert again == [inner, inner, 5, {"k": inner}, {"k": inner}, {"k": inner}, 0.5]


def test_one_mapping_and_a_small_handle():
    shared = ullage.share(RECORDS)
    again = passed_on(shared)
    assert again == RECORDS and len(ForkingPickler.dumps(shared)) < 600
    with open("/proc/self/maps") as maps:
        assert sum("ullage-shared" in line for line in maps) >= 1
    before = sum("ullage-shared" in line for line in open("/proc/self/maps"))
    keep = [passed_on(shared[i]) for i in range(10)]
    more = [passed_on(shared) for _ in range(10)]
    assert sum("ullage-shared" in line for line in open("/proc/self/maps")) == before
    assert len(keep) == len(more)


def test_pages_go_with_the_last_view():
    shared = ullage.share([np.zeros(100_000), 1])
    array = shared[0]

    def count():
        return sum("ullage-shared" in line for line in open("/proc/self/maps"))

    before = count()
    del shared
    assert count() == before
    del array
    assert count() == before - 1


def _read(shared, start, queue):
    queue.put((shared[start]["path"], len(shared), sum(r["label"] for r in shared)))


@pytest.mark.parametrize(
    "method, ours",
    [(method, ours) for method in ("fork", "spawn", "forkserver") for ours in (True, False)] + [("zygote", True)],
)
def test_in_other_processes(method, ours):
    context = ullage.context(method) if ours else multiprocessing.get_context(method)
    shared = ullage.share(RECORDS)
    queue = context.Queue()
    process = context.Process(target=_read, args=(shared, 4999, queue))
    process.start()
    assert queue.get(timeout=600) == ("images/00004999.jpg", 5000, sum(r["label"] for r in RECORDS))
    process.join()


def _send_back(queue, back):
    back.put(queue.get()[7]["path"])


def test_through_a_queue():
    context = multiprocessing.get_context("spawn")
    queue, back = context.Queue(), context.Queue()
    process = context.Process(target=_send_back, args=(queue, back))
    process.start()
    shared = ullage.share(RECORDS)
    queue.put(shared)
    assert back.get(timeout=600) == "images/00000007.jpg"
    process.join()


def test_a_handle_whose_sender_is_gone():
    code = (
        "import ullage, sys; from multiprocessing.reduction import ForkingPickler\n"
        "sys.stdout.buffer.write(ForkingPickler.dumps(ullage.share([1, 'x'])))"
    )
    sent = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    with pytest.raises(Error, match="it has ended, has let the data go"):
        pickle.loads(sent)


def shares():
    return {"list": ullage.share([1]), "part": ullage.share([1, 2])[1:], "dict": ullage.share({1: 2})}


@pytest.mark.parametrize("kind", ["list", "part", "dict", "array"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_a_share_that_would_be_stored_is_refused_with_the_way_out(kind, protocol):
    shared = ullage.share(np.ones(3)) if kind == "array" else shares()[kind]
    with pytest.raises(ullage.errors.NotStorable, match=r"to_python\(\)") as caught:
        pickle.dumps({"checkpoint": shared}, protocol)
    assert isinstance(caught.value, (Error, pickle.PicklingError))
    assert pickle.loads(pickle.dumps(shared.to_python())) is not None


def test_a_share_is_copied_as_a_view_of_the_same_pages():
    for shared in shares().values():
        assert copy.copy(shared) == shared == copy.deepcopy(shared)


def test_a_share_goes_through_pipes_and_executors():
    shared = ullage.share(RECORDS)
    ours, theirs = multiprocessing.Pipe()
    ours.send(shared)
    assert theirs.recv() == RECORDS
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        assert executor.submit(len, shared).result() == len(RECORDS)


@pytest.mark.parametrize(
    "made",
    [collections.OrderedDict(a=1), collections.defaultdict(list, a=[1]), collections.Counter("aab"), MyList([1])],
    ids=lambda made: type(made).__name__,
)
def test_a_subclass_is_refused_and_not_made_a_plain_one(made):
    for data in ([1, made], {"x": made}, made):
        with pytest.raises(NotShareable, match=rf"{type(made).__name__}; use (dict|list)\(\.\.\.\) of it"):
            ullage.share(data)


def test_a_nan_is_found_as_in_a_list_and_a_dict():
    nan = float("nan")
    shared = ullage.share([1.0, nan])
    assert nan in shared and shared.index(nan) == 1 and shared.count(nan) == 1 and shared == [1.0, nan]
    assert nan in ullage.share({nan: 1}) and ullage.share({nan: 1})[nan] == 1 and nan not in ullage.share({1.0: 1})
    assert ullage.share({"x": nan}) == {"x": nan}


def test_foreign_and_damaged_pages():
    fd = os.memfd_create("foreign", os.MFD_ALLOW_SEALING)
    os.write(fd, b"x" * 200)
    with pytest.raises(_native.ArenaError, match="not sealed"):
        _native.Pages.map(fd)
    import fcntl

    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    with pytest.raises(_native.ArenaError, match="does not begin as one"):
        _native.Pages.map(fd)
    os.close(fd)
    pages, _ = _native.pack([1, "x", {"a": [2.5]}], "data")
    good = os.pread(pages.fileno(), pages.nbytes, 0)
    for cut in (10, 64, len(good) - 1):
        with pytest.raises(_native.ArenaError):
            _native.Pages.map(_sealed(good[:cut]))


def _sealed(data):
    import fcntl

    fd = os.memfd_create("damaged", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


def test_damaged_bytes_are_errors_and_no_crash():
    pages, root = _native.pack([{"a": [1, "x", (2, 3)], "b": np.arange(4)}, {"k": {1: 2}}, [1.5, 2.5]], "data")
    good = bytearray(os.pread(pages.fileno(), pages.nbytes, 0))
    tables = int.from_bytes(good[16:24], sys.byteorder)
    tried = 0
    for at in range(root, tables):
        for value in (0, 7, 255):
            bad = bytearray(good)
            bad[at] = value
            fd = _sealed(bad)
            try:
                _native.Pages.map(fd).value(root).to_python()
            except (_native.ArenaError, MemoryError, ValueError, TypeError, OverflowError, UnicodeError):
                pass
            except AttributeError:
                pass  # the root became another kind of value
            finally:
                os.close(fd)
            tried += 1
    assert tried > 300


def test_too_large_is_an_error_before_the_kill():
    code = """
        import resource, ullage
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        data = [bytes(200 << 20) for _ in range(5)]
        try:
            ullage.share(data)
        except ullage.Error as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert "no memory to share this, at data[" in done.stdout, done


@pytest.fixture
def small_cgroup():
    """A memory cgroup of 256 MiB, v1 or v2."""
    with open("/proc/self/cgroup") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, names, path in lines:
        parent = {"memory": f"/sys/fs/cgroup/memory{path}", "": f"/sys/fs/cgroup{os.path.dirname(path)}"}.get(names)
        limit = {"memory": "memory.limit_in_bytes", "": "memory.max"}.get(names)
        if parent is None or not os.path.isdir(parent):
            continue
        folder = f"{parent}/ullage-test-{os.getpid()}"
        try:
            os.mkdir(folder)
        except OSError:
            continue
        try:
            with open(f"{folder}/{limit}", "w") as file:
                file.write(str(256 << 20))
            yield folder
            return
        except OSError:
            continue
        finally:
            os.rmdir(folder)
    pytest.skip("no memory cgroup can be made here")


def test_larger_than_the_cgroup_is_an_error_before_the_kill(small_cgroup):
    code = f"""
        import mmap, os, ullage
        numpy = __import__("numpy")
        data = [numpy.zeros(64 << 20, dtype=numpy.uint8) for _ in range(8)]  # never written, so not charged
        with open("{small_cgroup}/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))
        try:
            ullage.share({{i: one for i, one in enumerate(data)}})
        except ullage.Error as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert "no memory to share this, at data[" in done.stdout and "memory.max" in done.stdout, done


def test_ctrl_c_stops_the_packing():
    code = """
        import signal, ullage
        data = [[i, "x"] for i in range(200_000)]
        def stop(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, stop)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            while True:
                ullage.share(data)
        except KeyboardInterrupt:
            print("stopped")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=600)
    assert done.stdout == "stopped\n", done


NODE = """
    import os, sys, ullage
    def make():
        print("made", flush=True)
        return [{"a": i} for i in range(1000)]
    shared = ullage.share(make, per_node=True)
    second = ullage.share([os.environ["LOCAL_RANK"], "x"], per_node=True)
    print(shared[999]["a"], shared.nbytes > 0, second[1], flush=True)
    sys.stdin.read()
"""


def test_one_copy_for_the_ranks_of_a_node():
    environment = dict(os.environ, TORCHELASTIC_RUN_ID=f"test-{os.getpid()}", PYTHONUNBUFFERED="1")
    command = [sys.executable, "-c", textwrap.dedent(NODE)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    ranks = [subprocess.Popen(command, env=dict(environment, LOCAL_RANK=str(i)), **pipes) for i in range(3)]
    said = []
    for rank in ranks:
        line = rank.stdout.readline()
        while line == "made\n":
            said.append(line)
            line = rank.stdout.readline()
        assert line == "999 True x\n", line
    inodes = set()
    for rank in ranks:
        with open(f"/proc/{rank.pid}/maps") as maps:
            inodes |= {line.split()[4] for line in maps if "ullage-shared" in line}
    assert len(said) == 1 and len(inodes) == 2
    for rank in ranks:
        rank.communicate()


def test_per_node_needs_torchrun(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    with pytest.raises(Error, match="TORCHELASTIC_RUN_ID"):
        ullage.share([1], per_node=True)


hypothesis = pytest.importorskip("hypothesis")
strategies = hypothesis.strategies

LEAVES = (
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats(allow_nan=False)
    | strategies.complex_numbers(allow_nan=False)
    | strategies.text(strategies.characters(), max_size=20)
    | strategies.binary(max_size=20)
)
KEYS = strategies.text(max_size=3) | strategies.integers() | strategies.booleans() | strategies.floats(allow_nan=False)
OBJECTS = strategies.recursive(
    LEAVES,
    lambda inner: (
        strategies.lists(inner, max_size=8)
        | strategies.tuples(inner, inner)
        | strategies.dictionaries(strategies.sampled_from("abcd"), inner, max_size=4)
        | strategies.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=40,
)


@hypothesis.settings(max_examples=int(os.environ.get("ULLAGE_TEST_EXAMPLES", "150")), deadline=None)
@hypothesis.given(strategies.lists(OBJECTS, max_size=12), strategies.data())
def test_any_object_reads_back(rows, data):
    shared = ullage.share(rows)
    assert repr(shared.to_python()) == repr(rows)
    assert shared == rows and list(shared) == rows
    if rows:
        part = data.draw(strategies.slices(len(rows)))
        assert passed_on(shared[part]).to_python() == rows[part]
    again = ullage.share({"rows": rows, "twice": rows})
    assert repr(again.to_python()) == repr({"rows": rows, "twice": rows})
