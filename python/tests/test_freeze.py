"""`ullage.freeze`: what it makes immortal, what it leaves alone, and that reading what is frozen writes nothing."""

import array
import collections
import ctypes
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import gc
import io
import logging
import os
import pathlib
import random
import socket
import subprocess
import sys
import textwrap
import threading
import types
import uuid
import warnings
import weakref

import pytest

import ullage
from ullage import _freeze, _native
from ullage.errors import Unsupported

needs_immortal = pytest.mark.skipif(
    not _native.can_freeze(), reason="this Python has no immortal objects, or unknown ones"
)
SOURCE = os.path.dirname(os.path.dirname(ullage.__file__))
IMMORTAL = 1 << 31
fresh = iter(range(10**6, 10**9))


def immortal(thing):
    return sys.getrefcount(thing) >= IMMORTAL


def text():
    """A string that nothing else refers to."""
    return f"text {next(fresh)}"


class Plain:
    def __init__(self):
        self.name, self.number = text(), next(fresh)


class Slotted:
    __slots__ = ("__weakref__", "left", "right")

    def __init__(self):
        self.left, self.right = text(), [text()]


class Both(Slotted):
    def __init__(self):
        super().__init__()
        self.more = text()


@dataclasses.dataclass(frozen=True)
class Data:
    path: str
    size: float


class Dict(dict):
    pass


class List(list):
    pass


class Str(str):
    pass


class Named(collections.namedtuple("Named", "left right")):
    pass


class Colour(enum.Enum):
    RED = "a red that only this enum knows"


def with_attribute(thing):
    thing.attribute = text()
    return thing


def cycle():
    thing = [text()]
    thing.append({"self": thing})
    return thing


ZOO = {
    "list": lambda: [text(), [text()], []],
    "tuple": lambda: (text(), (text(), text())),
    "dict": lambda: {text(): text(), "key": [text()]},
    "dict of tuples": lambda: {(text(), 1): text(), 2.5: text()},
    "set": lambda: {text(), (text(),)},
    "frozenset": lambda: frozenset([text(), text()]),
    "deque": lambda: collections.deque([text(), [text()]]),
    "OrderedDict": lambda: collections.OrderedDict({text(): text()}),
    "defaultdict": lambda: collections.defaultdict(list, {text(): [text()]}),
    "Counter": lambda: collections.Counter([text()]),
    "ChainMap": lambda: collections.ChainMap({text(): text()}),
    "instance": Plain,
    "instance with a dict": lambda: vars(thing := Plain()) and thing,
    "slots": Slotted,
    "slots and dict": Both,
    "dataclass": lambda: Data(text(), float(next(fresh))),
    "subclass of dict": lambda: with_attribute(Dict({text(): text()})),
    "subclass of list": lambda: with_attribute(List([text()])),
    "subclass of str": lambda: with_attribute(Str(text())),
    "namedtuple": lambda: Named(text(), [text()]),
    "namespace": lambda: types.SimpleNamespace(a=text()),
    "mappingproxy": lambda: types.MappingProxyType({text(): text()}),
    "enum": lambda: [Colour.RED],
    "numbers": lambda: [next(fresh), float(next(fresh)), complex(next(fresh), 1), 1 << 200],
    "bytes": lambda: [text().encode(), bytearray(text().encode()), array.array("i", [1, 2])],
    "range and slice": lambda: [range(next(fresh), next(fresh)), slice(next(fresh), None)],
    "library": lambda: [decimal.Decimal(next(fresh)), fractions.Fraction(next(fresh), 7), uuid.UUID(int=next(fresh))],
    "time": lambda: [datetime.datetime(2000, 1, 1), datetime.timedelta(next(fresh) % 999)],
    "path": lambda: [pathlib.PurePosixPath("a") / text()],
    "partial": lambda: functools.partial(print, text(), end=text()),
    "non-ASCII": lambda: [f"größe {next(fresh)}", f"大 {next(fresh)}"],
    "cycle": cycle,
}


def reached(root):
    """What one gets to from an object, found in another way than freeze finds it."""
    stops = tuple(_freeze._stops())
    seen, pending = {}, [root]
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, stops):
            continue
        seen[id(thing)] = thing
        pending += gc.get_referents(thing)
        if isinstance(thing, dict):
            pending += thing
        if isinstance(thing, range):
            pending += [thing.start, thing.stop]
        if type(thing).__name__ == "ndarray":
            pending += [thing.base] if thing.dtype != object else [thing.base, *thing.ravel().tolist()]
    return list(seen.values())


@needs_immortal
@pytest.mark.parametrize("name", ZOO)
def test_all_that_is_reached_is_immortal_and_hidden_from_the_collector(name):
    thing = ZOO[name]()
    mortal = {id(part) for part in reached(thing) if not immortal(part)}
    assert mortal
    result = ullage.freeze(thing)
    parts = reached(thing)
    assert not [part for part in parts if not immortal(part)]
    assert not [part for part in parts if id(part) in mortal and gc.is_tracked(part)]
    assert result.frozen == len(mortal) == sum(result.by_type.values())


def raw(thing):
    """Bytes of an object in memory, without its text or digits, with the collector's words where it has them."""
    head = 16 if type(thing).__flags__ & (1 << 14) else 0
    items = 8 * len(thing) if isinstance(thing, tuple) else 0
    return ctypes.string_at(id(thing) - head, head + type(thing).__basicsize__ + items)


def read(thing):
    """What reading is: look at all that can be looked at."""
    for part in reached(thing):
        try:
            # Python 3.14 keeps the hash of a tuple, which the docstring says.
            isinstance(part, (tuple, functools.partial)) or hash(part)
        except TypeError:
            pass
        if isinstance(part, collections.abc.Mapping):
            assert all(part[key] == value for key, value in part.items())
        elif isinstance(part, (collections.abc.Sequence, collections.abc.Set)):
            assert part == part and len(list(part)) == len(part) and all(item in part for item in part)
        for name in ("name", "number", "left", "right", "more", "attribute", "path", "size"):
            getattr(part, name, None)
        repr(type(part)), bool(part)


# These keep an answer when first asked, which the docstring says.
WRITES = {"time", "path", "library", "enum"}


@needs_immortal
@pytest.mark.parametrize("name", sorted(set(ZOO) - WRITES))
def test_reading_writes_to_no_object(name):
    thing = ZOO[name]()
    ullage.freeze(thing)
    parts = reached(thing)
    before = [raw(part) for part in parts]
    read(thing)
    gc.collect()
    gc.collect()
    changed = [part for part, bytes_ in zip(parts, before) if raw(part) != bytes_]
    assert changed == []


@needs_immortal
def test_the_look_at_bytes_sees_a_write():
    thing = [text()]
    before = raw(thing[0])
    hash(thing[0])
    assert raw(thing[0]) != before


@needs_immortal
def test_counts_are_told():
    result = ullage.freeze([{"path": text(), "label": next(fresh)} for _ in range(10)])
    assert result.by_type["dict"] == 10 and result.by_type["list"] == 1 and result.by_type["int"] == 10
    assert result.frozen >= 31 and result.skipped == {}
    assert repr(result).startswith(f"<Frozen {result.frozen} objects: ") and "10 dict" in repr(result)
    plain = ullage.freeze(Plain())
    assert plain.by_type[f"{__name__}.Plain"] == 1


@needs_immortal
def test_a_second_time_finds_nothing_but_what_the_argument_gained():
    for thing, add in (([text()], lambda it, new: it.append(new)), (Plain(), lambda it, new: setattr(it, "name", new))):
        assert ullage.freeze(thing).frozen > 1
        assert ullage.freeze(thing).frozen == 0
        new = [text()]
        add(thing, new)
        assert ullage.freeze(thing).frozen == 2 and immortal(new)


@needs_immortal
def test_hashes_are_there():
    key, raw_bytes, long = text(), text().encode(), "x" * 5000 + text()
    ullage.freeze([key, raw_bytes, long])

    def kept(thing):
        return ctypes.c_ssize_t.from_address(id(thing) + 24).value

    assert kept(key) == hash(key) and kept(raw_bytes) == hash(raw_bytes)
    assert kept(long) == -1


def generator():
    yield text()


async def coroutine():
    pass


def of_a_closure():
    held = text()
    return lambda: held


def machinery():
    started = coroutine()
    yield "function", of_a_closure()
    yield "builtin_function_or_method", [].append
    yield "method", Plain().__init__
    yield "type", type("Fresh", (), {})
    yield "module", types.ModuleType("fresh")
    yield "code", of_a_closure().__code__
    yield "frame", sys._getframe()
    yield "generator", generator()
    yield "coroutine", started
    yield "weakref.ReferenceType", weakref.ref(Slotted)
    yield "memoryview", memoryview(text().encode())
    yield "_thread.lock", threading.Lock()
    yield "_thread.RLock", threading.RLock()
    yield "_thread._local", threading.local()
    yield "threading.Thread", threading.Thread()
    yield "logging.Logger", logging.getLogger(text())
    yield "_io.BytesIO", io.BytesIO(text().encode())
    yield "socket.socket", socket.socket(socket.AF_UNIX)
    yield "functools._lru_cache_wrapper", functools.lru_cache(of_a_closure())
    started.close()


@needs_immortal
@pytest.mark.parametrize("number", range(sum(1 for _ in machinery())))
def test_machinery_is_left_alone_and_told(number):
    kept = list(machinery())
    name, thing = kept[number]
    held = [part for part in gc.get_referents(thing) if not immortal(part)]
    result = ullage.freeze([thing, thing])
    assert not immortal(thing)
    assert sum(result.skipped.values()) == 1, result
    assert list(result.skipped) == [name] or (name, list(result.skipped)) == (
        "weakref.ReferenceType",
        ["weakref.ReferenceType"],
    )
    assert not [part for part in held if immortal(part)]
    assert result.by_type == {"list": 1}
    assert ullage.freeze(thing).skipped == result.skipped  # as the argument, too


@needs_immortal
def test_what_modules_hold_is_left_alone():
    result = ullage.freeze([sys.modules, globals(), vars(logging)])
    assert result.by_type == {"list": 1} and result.skipped == {"dict of a module": 3}
    assert not immortal(globals()) and not immortal(sys.modules) and not immortal(ZOO)


@needs_immortal
def test_the_class_of_an_instance_is_not_told_as_skipped():
    kind = type("Fresh", (), {})
    assert ullage.freeze([kind(), kind()]).skipped == {} and not immortal(kind)


@needs_immortal
def test_what_is_frozen_can_be_changed_and_what_it_loses_is_freed():
    thing, loose = [text()], Slotted()
    ullage.freeze(thing)
    seen = weakref.ref(loose)
    thing.append(loose)
    del loose
    gc.collect()
    assert isinstance(seen(), Slotted)  # a frozen list keeps what it holds, though the collector does not see it
    thing.pop()
    assert seen() is None
    mapping = {"a": text()}
    ullage.freeze(mapping)
    mapping["b"] = Slotted()
    seen = weakref.ref(mapping["b"])
    del mapping["b"], mapping["a"]
    assert seen() is None and mapping == {}


@needs_immortal
def test_rings_through_frozen_objects_stay_and_others_are_collected():
    frozen = [text()]
    ullage.freeze(frozen)
    inside, outside = Both(), Both()
    inside.right, outside.right = [frozen, inside], [frozen, outside]
    frozen.append(inside)
    seen, gone = weakref.ref(inside), weakref.ref(outside)
    del inside, outside
    gc.collect()
    assert seen() is not None and gone() is None


@needs_immortal
def test_deep_nesting_needs_no_deep_stack():
    thing = []
    for _ in range(200_000):
        thing = [thing]
    assert ullage.freeze(thing).frozen == 200_001


@needs_immortal
def test_a_copy_of_a_frozen_dict_is_an_ordinary_one():
    thing = {text(): text()}
    ullage.freeze(thing)
    for copy in (thing.copy(), dict(thing), {**thing}):
        copy["self"] = copy
        assert not immortal(copy) and gc.is_tracked(copy)


@needs_immortal
def test_types_that_hide_something_from_the_collector():
    numpy = pytest.importorskip("numpy")
    words = [text() for _ in range(24)]
    objects = numpy.array(words, dtype=object).reshape(4, 6)
    assert not any(map(immortal, words))
    result = ullage.freeze({"strided": objects[1::2, ::-3]})
    assert result.by_type["numpy.ndarray"] == 2  # the view, and what it is a view of
    assert all(map(immortal, words))

    for order in "CF":
        words = [text() for _ in range(6)]
        ullage.freeze(numpy.array(words, dtype=object).reshape(2, 3).copy(order))
        assert all(map(immortal, words))
    ullage.freeze(numpy.array(word := text(), dtype=object))
    assert immortal(word)
    assert ullage.freeze(numpy.empty(3, dtype=object)).frozen == 1
    assert ullage.freeze(numpy.empty((0, 3), dtype=object)).frozen == 1

    numbers = numpy.arange(10.0)
    assert ullage.freeze([numbers[2:], numbers[3:]]).by_type == {"list": 1, "numpy.ndarray": 3} and immortal(numbers)

    class Answers(numpy.ndarray):
        base = dtype = property(lambda self: pytest.fail("a property of a subclass was asked"))

    thing = numpy.array([word := text()], dtype=object).view(Answers)
    ullage.freeze(with_attribute(thing))
    assert immortal(word) and immortal(thing.attribute)

    words = [text() for _ in range(5)]
    records = numpy.array([(1, word) for word in words], dtype=[("odd", "i1"), ("word", object)])
    result = ullage.freeze(records)
    assert result.skipped == {"numpy.ndarray of records that hold objects": 1} and not any(map(immortal, words))
    ullage.freeze(records["word"][::2])
    assert [immortal(word) for word in words] == [True, False, True, False, True]


@needs_immortal
def test_large_containers_in_any_order():
    things = [Plain() for _ in range(3000)]
    random.Random(1).shuffle(things)
    result = ullage.freeze(things)
    assert result.frozen == 9001 and all(immortal(thing.name) and immortal(thing.number) for thing in things)
    mapping = {text(): [text()] for _ in range(3000)}
    assert ullage.freeze(mapping).frozen == 9001
    assert all(immortal(key) and immortal(value) for key, [value] in mapping.items())
    assert ullage.freeze(tuple([text() for _ in range(3000)] + [None] * 3000)).frozen == 3001


@needs_immortal
def test_tensors_are_skipped_with_a_warning_that_says_what_to_do():
    torch = pytest.importorskip("torch")
    thing = {"a": torch.zeros(3), "b": [torch.nn.Parameter(torch.zeros(3))], "c": torch.zeros(2).untyped_storage()}
    with pytest.warns(RuntimeWarning, match=r"3 tensors .*ullage\.share\(obj\)") as told:
        result = ullage.freeze(thing)
    assert told[0].filename == __file__
    assert result.skipped["torch.Tensor"] == 1 and sum(result.skipped.values()) == 3
    assert not immortal(thing["a"]) and immortal(thing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ullage.freeze([text()])


def run(code, *options, **env):
    environment = dict(os.environ, PYTHONPATH=SOURCE, **env)
    command = [sys.executable, *options, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


@needs_immortal
@pytest.mark.parametrize("env", [{}, {"PYTHONMALLOC": "debug"}, {"PYTHONMALLOC": "malloc"}])
def test_a_process_with_frozen_objects_ends_well(env):
    code = """
        import gc, sys, weakref, ullage
        class Thing:
            def __init__(self, other): self.other, self.name, self.kind = other, sys.intern("x" + str(id(self))), Thing
            def __del__(self): print("never")
        things = [Thing([n]) for n in range(1000)]
        things[0].other = things
        ring = {"a": things, sys.intern("a new key"): (1.5, {frozenset([("b", 2)])})}
        print(ullage.freeze(ring).frozen > 2500)
        sys.intern("made " + str(7)), sys.intern(ring.__class__.__name__)
        del things, ring
        gc.collect()
    """
    ended = run(code, **env)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


@needs_immortal
def test_a_frozen_string_can_be_interned_later():
    code = """
        import sys, ullage
        words = ["word " + str(n) for n in range(100)]
        ullage.freeze(words)
        assert all(sys.intern(word) is word for word in words)
        assert all(getattr(type("T", (), {word: word}), word) is word for word in words)
    """
    ended = run(code)
    assert (ended.returncode, ended.stderr) == (0, "")


@needs_immortal
def test_a_forked_child_that_reads_copies_hardly_a_page():
    # Bit 56 of /proc/PID/pagemap: mapped here only; a page that a child has not written to is its parent's as well.
    code = """
        import gc, os, sys, ullage

        class Thing:
            def __init__(self, n): self.path, self.label = f"/data/{n:08d}.jpg", n + 1000

        def pages(things):
            parts = [part for thing in things for part in (thing, *thing["rows"], thing["thing"], thing["caption"])]
            return sorted({id(part) // 4096 for part in parts})

        def own(numbers):
            with open("/proc/self/pagemap", "rb", 0) as file:
                return sum(os.pread(file.fileno(), 8, 8 * n)[7] & 1 for n in numbers)

        def read(things):
            return sum(len({thing["caption"], thing["thing"].path, *thing["rows"]}) + thing["thing"].label for thing in things)

        things = [
            {"thing": Thing(n), "rows": (n + 0.5, f"row {n}"), "caption": f"a caption, number {n}"} for n in range(30_000)
        ]
        numbers = pages(things)
        if sys.argv[1] == "frozen":
            ullage.freeze(things)
        sys.stdout.flush()
        if os.fork() == 0:
            before = own(numbers)
            read(things)
            gc.collect()
            print(own(numbers) - before, len(numbers), flush=True)
            os._exit(0)
        os.wait()
    """
    environment = dict(os.environ, PYTHONPATH=SOURCE)

    def written(way):
        command = [sys.executable, "-c", textwrap.dedent(code), way]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)
        return [int(word) for word in told.stdout.split()]

    (frozen, pages), (plain, _) = written("frozen"), written("plain")
    assert plain > pages * 0.9
    assert frozen < pages * 0.02, (frozen, pages)


@needs_immortal
def test_forked_workers_of_a_loader_give_the_same():
    torch = pytest.importorskip("torch")

    class Items(torch.utils.data.Dataset):
        def __init__(self):
            self.items = [{"path": f"p{n}", "label": n + 1000} for n in range(100)]

        def __len__(self):
            return len(self.items)

        def __getitem__(self, index):
            return self.items[index]

    items = Items()
    result = ullage.freeze(items)
    assert result.by_type["dict"] >= 100 and immortal(items) and not result.skipped
    loader = torch.utils.data.DataLoader(items, batch_size=10, num_workers=2, multiprocessing_context="fork")
    labels = [label for batch in loader for label in batch["label"].tolist()]
    assert labels == list(range(1000, 1100))


def test_other_pythons_are_refused_and_told_what_to_use(monkeypatch):
    monkeypatch.setattr(_native, "can_freeze", lambda: False)
    for version, config, words in [
        ((3, 11, 4), None, r"Python 3\.11 has no immortal objects"),
        ((3, 13, 0), 1, r"a free-threaded build of Python 3\.13"),
        ((3, 99, 0), 0, r"how Python 3\.99 marks immortal objects is not known"),
    ]:
        monkeypatch.setattr(_freeze.sys, "version_info", version)
        monkeypatch.setattr(_freeze.sysconfig, "get_config_var", {"Py_GIL_DISABLED": config}.get)
        with pytest.raises(Unsupported, match=words + r".*Use ullage\.share\(obj\) instead"):
            ullage.freeze([])


@pytest.mark.skipif(_native.can_freeze(), reason="this Python has immortal objects")
def test_this_python_is_refused():
    thing = [text()]
    with pytest.raises(Unsupported, match=r"ullage\.share"):
        ullage.freeze(thing)
    with pytest.raises(RuntimeError, match="not known"):
        _native.freeze(thing, [], None)
    assert sys.getrefcount(thing) < 10


def test_which_pythons_can():
    expected = sys.implementation.name == "cpython" and (3, 12) <= sys.version_info[:2] <= (3, 14)
    assert _native.can_freeze() == (expected and not sys.abiflags)


def test_the_switch_turns_it_off(monkeypatch):
    monkeypatch.setenv("ULLAGE_DISABLE", "1")
    thing = [text()]
    result = ullage.freeze(thing)
    assert (result.frozen, result.by_type, result.skipped) == (0, {}, {}) and not immortal(thing)
    assert repr(result) == "<Frozen 0 objects>"


def test_the_docstring_says_what_still_writes_and_for_how_long():
    words = " ".join(ullage.freeze.__doc__.split())
    for said in ("UTF-8", "vars(x)", "copy.copy", "before 3.12", "until the process exits", "ullage.share"):
        assert said in words
