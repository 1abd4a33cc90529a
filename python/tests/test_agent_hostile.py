"""No method of the program's classes, or of the classes of these, is called by the agent: each that is says from where."""

import sys

import pytest

from receiver import HEARD, several, watched

SPIES = """
import collections, multiprocessing, os, sys, threading, time, types
called = []
def spied(name, base):
    def method(*arguments, **keywords):
        frame = sys._getframe(1)
        while frame is not None:
            module = dict.get(frame.f_globals, "__name__")
            if type(module) is str and module.startswith("_ullage_"):
                called.append("%s from %s of %s" % (name, frame.f_code.co_name, module))
                break
            frame = frame.f_back
        return base(*arguments, **keywords)
    return method

def refuses(*_):
    raise AttributeError("nothing is there")

OF_ALL = ("__getattribute__", "__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__format__", "__sizeof__", "__dir__")
OTHERS = {"__getattr__": refuses, "__len__": lambda _: 3, "__bool__": lambda _: True, "__iter__": lambda _: iter(()),
          "__contains__": lambda *_: False, "__index__": lambda _: 1, "__float__": lambda _: 1.0, "__int__": lambda _: 1,
          "__fspath__": lambda _: "/tmp"}

class Kind(type):
    pass
for name in OF_ALL + ("__instancecheck__", "__subclasscheck__", "mro"):
    setattr(Kind, name, spied("a class's " + name, getattr(type, name)))
for name, base in OTHERS.items():
    setattr(Kind, name, spied("a class's " + name, base))

def spies(base):
    space = {name: spied(name, getattr(base, name)) for name in OF_ALL}
    space.update({name: spied(name, other) for name, other in OTHERS.items() if name not in base.__dict__})
    names = [name for name in ("get", "items", "values", "keys") if name in base.__dict__]
    space.update({name: spied(name, base.__dict__[name]) for name in names})
    space["__class__"] = property(spied("__class__", lambda _: base))
    return Kind("Spy", (base,), space)

class Key(metaclass=Kind):
    __hash__ = spied("a key's __hash__", lambda self: hash("__name__"))
    __eq__ = spied("a key's __eq__", lambda self, other: False)

Plain, List, Dict, Text, Set = spies(object), spies(list), spies(dict), spies(str), spies(set)
def show():
    print(sorted(set(called)))
"""

GROWS = (
    HEARD
    + SPIES
    + """
import dis, gc
gc.disable()
class Holder(metaclass=Kind):
    def __init__(self):
        self.history = []
        self.by_key = collections.OrderedDict()
    __next__ = spied("__next__", lambda _: None)

holder, hooked = Holder(), types.SimpleNamespace(a_hooks=collections.OrderedDict({1: Plain()}))
names = {Key(): Plain(), 1: 2}
a_list, a_dict, a_text, a_set = List([Plain()]), Dict(a=Plain()), Text("x"), {Text("x"), Plain()}
default, cycle = collections.defaultdict(Plain), [Plain()]
cycle.append(cycle)
# Modules and names that are none.
odd = types.ModuleType("odd")
odd.__file__ = __file__
odd.__dict__["__name__"] = Plain()
odd.held = [Plain()]
sys.modules["odd"] = odd
sys.modules["lazy"] = Plain()
for name in ("numpy", "pyarrow", "torch", "torch.nn", "torch.autograd", "tempfile"):
    sys.modules.setdefault(name, Plain())
class OfLazy:
    pass
OfLazy.__module__ = "lazy"
in_lazy = OfLazy()
in_lazy.history = []

class Names(dict):
    get = spied("get of the globals", dict.get)
    __getitem__ = spied("an item of the globals", dict.__getitem__)

inside = Names(__name__=Plain(), __builtins__=__builtins__, go_on=None)
exec("def go(local):\\n    other = [local]\\n    go_on(other)", inside)

def circle():
    one = [Plain()]
    one.append(one)

def go_on(other):
    local = [Plain(), a_list]
    while not heard():
        for _ in range(100):
            holder.history.append(Plain())
            local.append(List([bytes(1 << 12)]))
            in_lazy.history.append(bytes(1 << 12))
            other.append(Holder())
            holder.by_key[Plain()] = bytes(1 << 12)
            names[Key()] = bytes(1 << 12)
            circle()
        time.sleep(0.01)

inside["go_on"] = go_on
dict.__getitem__(inside, "go")(Plain())
show()
"""
)


def calls(script, program, *arguments, **until):
    done, receiver = watched([sys.executable, script(program), *arguments], text=True, **until)
    assert done.stderr == ""
    assert done.stdout == "[]\n"
    return receiver


def test_a_program_that_grows(script):
    receiver = calls(script, GROWS, until=several(3, "census"))
    holders = [one for message in receiver.of("census") for one in message["holders"]]
    assert "__main__.holder.by_key" in [one["name"] for one in holders]
    assert any(message["garbage"] for message in receiver.of("census"))


LEAVES = (
    HEARD
    + SPIES
    + """
import asyncio, functools, pathlib, queue, traceback
from concurrent.futures import ProcessPoolExecutor

class Queue(queue.Queue, metaclass=Kind):
    __setattr__ = spied("__setattr__ of a queue", object.__setattr__)
    __getattribute__ = spied("__getattribute__ of a queue", object.__getattribute__)
    maxsize = property(spied("a property of a queue", lambda self: 0), lambda self, size: None)

class Thread(threading.Thread, metaclass=Kind):
    __getattribute__ = spied("__getattribute__ of a thread", object.__getattribute__)
    def run(self):
        raise OSError(2, "nothing is there", Text("a path"))

class Process(multiprocessing.get_context("fork").Process, metaclass=Kind):
    __getattribute__ = spied("__getattribute__ of a process", object.__getattribute__)
    __getattr__ = spied("__getattr__ of a process", refuses)

class Target(metaclass=Kind):
    __getattribute__ = spied("__getattribute__ of a target", object.__getattribute__)
    __getattr__ = spied("__getattr__ of a target", refuses)
    def __call__(self, *_):
        try:
            raise Error("inner", Plain())
        except Error as inner:
            error = ValueError("outer")
            error.__cause__ = inner
            try:
                raise error
            except ValueError:
                traceback.format_exc()
        show()

class Error(OSError, metaclass=Kind):
    __getattribute__ = spied("__getattribute__ of an exception", OSError.__getattribute__)
    __str__ = spied("__str__ of an exception", OSError.__str__)
    errno = property(spied("errno of an exception", lambda _: Plain()))
    __cause__ = property(spied("cause of an exception", lambda _: None))

def task(_):
    raise Error(1, Plain())

class Main:
    __getattribute__ = spied("__getattribute__ of main", object.__getattribute__)

main = Main()
threading.excepthook = lambda args, before=threading.excepthook: before(args)
sys.stderr = open(os.devnull, "w")
thread = Thread(name=Text("T"))
thread.start(); thread.join()
some = Queue()
for number in range(100):
    some.put(Plain())
for target in (Target(), functools.partial(Target(), 1), Target().__call__):
    process = Process(target=target, name=Text("P"), args=(Plain(),))
    process.start(); process.join()
with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
    try:
        pool.submit(task, 1).result()
    except Exception:
        pass
for error in (OSError(2, "no", Plain()), OSError(2, "no", pathlib.Path("x")), SyntaxError(Plain()),
              KeyError(Plain()), Error(1, "e"), ImportError(Text("i")), ValueError(Text("v"))):
    try:
        raise error
    except BaseException:
        sys.last_value = error
        try:
            sys.excepthook(*sys.exc_info())
        except BaseException:
            pass
show()
"""
)


def test_exceptions_processes_threads_and_queues(script):
    done, receiver = watched([sys.executable, script(LEAVES)], text=True)
    assert set(done.stdout.split("\n")) == {"[]", ""}, done.stdout
    said = receiver.of("exception")
    assert {"thread", "executor-worker", "main"} <= {one["left"] for one in said}
    assert "[Errno 2] no: PosixPath('x')" in [one["text"] for one in said]
    assert "v" in [one["text"] for one in said]
    processes = receiver.of("process")
    targets = ["__main__.Target", "__main__.Target", "__main__.Target.__call__"]
    assert [one["target"] for one in processes][:3] == targets and processes[0]["name"] == "P"


LOADS = (
    SPIES
    + """
import warnings, torch
warnings.simplefilter("ignore")
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, Sampler

class Indices(Sampler, metaclass=Kind):
    __getattribute__ = spied("__getattribute__ of a sampler", object.__getattribute__)
    def __init__(self): pass
    def __iter__(self): return iter(range(8))
    def __len__(self): return 8

class Batches(BatchSampler, metaclass=Kind):
    __getattribute__ = spied("__getattribute__ of a sampler", object.__getattribute__)
    __getattr__ = spied("__getattr__ of a sampler", refuses)

class Data(Dataset, metaclass=Kind):
    __getattribute__ = spied("__getattribute__ of a dataset", object.__getattribute__)
    files = [Plain()] * 8
    def __getitem__(self, place): return torch.ones(2)
    def __len__(self): return len(self.files)

class Stream(IterableDataset, metaclass=type("Both", (Kind, type(IterableDataset)), {})):
    def __iter__(self):
        buffer = [Plain() for _ in range(100)]
        for number in range(8):
            time.sleep(0.3)
            yield torch.ones(2)

class Loader(DataLoader, metaclass=Kind):
    __getattr__ = spied("__getattr__ of a loader", refuses)
for name in ("dataset", "num_workers", "batch_size", "pin_memory", "sampler", "batch_sampler"):
    reads = spied("a property of a loader", lambda self, name=name: self.__dict__[name])
    type.__setattr__(Loader, name, property(reads, lambda self, one, name=name: self.__dict__.update({name: one})))

for loader in (Loader(Data(), sampler=Indices()), Loader(Data(), batch_sampler=Batches(Indices(), 2, False)),
               Loader(Data(), num_workers=1, pin_memory=Text("")), Loader(Stream(), batch_size=None),
               Loader(Data(), shuffle=True, num_workers=1, multiprocessing_context="fork")):
    for _ in loader:
        pass
show()
"""
)


def test_loaders(script):
    pytest.importorskip("torch")
    receiver = calls(script, LOADS)
    said = receiver.of("loader")
    assert [one["workers"] for one in said] == [1, 1] and [one["start_method"] for one in said] == ["fork", "fork"]
    assert [one["dataset"] for one in said] == ["__main__.Data", "__main__.Data"]
