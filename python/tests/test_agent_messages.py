"""A moment at each message of multiprocessing, and that a program finds `ForkingPickler.loads` as it was."""

import sys

import pytest

from receiver import HEARD, several, watched
from test_agent_transparency import same

# select() is no moment, and nothing here is collected: only the messages let the agent come by.
WAITS = (
    HEARD
    + """
import gc, multiprocessing, select
gc.disable()
reader, writer = multiprocessing.Pipe(False)
kept = []
while not heard():
    kept.append(b"x" * (1 << 20))
    writer.send(1)
    reader.recv()
    select.select([], [], [], 0.02)
"""
)


def test_a_process_that_gets_messages_is_looked_into(python, script):
    _, receiver = watched([python, script(WAITS)], until=several(2, "census"))
    holders = [one["name"] for census in receiver.of("census")[1:] for one in census["holders"]]
    assert "__main__.kept" in holders


# What asks for it in every way that a program has, before and after.
SHOWS = """
import copy, gc, inspect, io, pickle, pydoc, sys, types, weakref
sys.unraisablehook = lambda _: None  # CPython's own buffers, with their addresses
known = {pickle.loads: "known before", id(pickle.loads): "its place"}
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from unittest import mock
loads = ForkingPickler.loads
print(loads is pickle.loads, type(loads) is types.BuiltinFunctionType, known[loads], known[id(loads)])
print(loads.__self__, loads.__name__, loads.__qualname__, loads.__module__, loads.__doc__, inspect.signature(loads))
print(inspect.isbuiltin(loads), callable(loads), repr(loads) == repr(pickle.loads), hash(loads) == hash(pickle.loads))
print(pickle.loads(pickle.dumps(loads)) is loads, copy.copy(loads) is loads, copy.deepcopy(loads) is loads)
print(weakref.ref(loads)() is loads, dict(inspect.getmembers(ForkingPickler))["loads"] is loads)
print(ForkingPickler(io.BytesIO()).loads is loads, getattr(ForkingPickler, "loads") is loads, "loads" in vars(ForkingPickler))
print([one for one in inspect.classify_class_attrs(ForkingPickler) if one.name == "loads"][0].kind)
print([line for line in pydoc.render_doc(ForkingPickler).splitlines() if "loads" in line])
placed = vars(ForkingPickler)["loads"]
print(placed == loads, loads == placed, placed != loads, hash(placed) == hash(loads), repr(placed) == repr(loads))
print(placed(b"N."), placed.__name__, placed.__self__, placed.__class__, copy.copy(placed) == loads, weakref.ref(placed)() is placed)
print(isinstance(placed, types.BuiltinFunctionType), callable(placed), {placed: 1}[loads], inspect.signature(placed))

class Sub(ForkingPickler):
    pass
class Mine(ForkingPickler):
    @classmethod
    def loads(cls, data, **keywords):
        return "mine", super().loads(data, **keywords)
copied = type("Copied", (ForkingPickler,), dict(vars(ForkingPickler)))
rebuilt = type("Rebuilt", ForkingPickler.__bases__, {k: v for k, v in vars(ForkingPickler).items() if k not in ("__dict__", "__weakref__")})
data = pickle.dumps({1: [2]})
print(Sub.loads is loads, Mine.loads(data), copied.loads is loads, rebuilt.loads is loads, rebuilt.loads(data))
print(loads(data, encoding="latin1", buffers=[]), loads(memoryview(data)), loads(bytearray(data)))

def attempt(what, *arguments, **keywords):
    try:
        print(what(*arguments, **keywords))
    except BaseException as error:
        frames, traceback = [], error.__traceback__
        while traceback is not None:
            frames.append((traceback.tb_frame.f_code.co_name, traceback.tb_lineno))
            traceback = traceback.tb_next
        print(type(error), error, frames, error.__context__)
attempt(ForkingPickler.loads)
attempt(ForkingPickler.loads, 1)
attempt(ForkingPickler.loads, b"")
attempt(ForkingPickler.loads, data[:-1])
attempt(ForkingPickler.loads, b"cnowhere\\nnothing\\n.")
attempt(ForkingPickler.loads, data, bad=1)
attempt(setattr, loads, "__name__", "other")
attempt(setattr, placed, "__name__", "other")
attempt(type(placed) if type(placed) is type(loads) else types.BuiltinFunctionType)
try:
    int("x")
except ValueError:
    attempt(ForkingPickler.loads, b"")

# Replaced, put back, deleted.
with mock.patch.object(ForkingPickler, "loads", lambda data: ("patched", pickle.loads(data))):
    print(ForkingPickler.loads(data))
print(ForkingPickler.loads is loads)
calls = []
with mock.patch.object(reduction.ForkingPickler, "loads", lambda data: calls.append(1) or pickle.loads(data)):
    import multiprocessing
    reader, writer = multiprocessing.Pipe(False)
    writer.send("through")
    print(reader.recv(), calls)
with mock.patch("multiprocessing.reduction.ForkingPickler.loads", autospec=True) as spied:
    ForkingPickler.loads(data)
    print(spied.call_count)
ForkingPickler.loads = staticmethod(lambda data: "theirs")
print(ForkingPickler.loads(data), type(vars(ForkingPickler)["loads"]))
del ForkingPickler.loads
attempt(getattr, ForkingPickler, "loads")
ForkingPickler.loads = loads
print(vars(ForkingPickler)["loads"] is loads)
gc.collect()
print([one for one in sys.modules if "_native" in one and "ullage" in one])
"""


def test_a_program_finds_the_function(python, script):
    same([python, "-W", "error", script(SHOWS)])


REPLACED_BEFORE = """
import pickle
real = pickle.loads
def loads(data, **keywords):
    return "theirs", real(data, **keywords)
pickle.loads = loads
import multiprocessing
from multiprocessing.reduction import ForkingPickler
print(ForkingPickler.loads is loads, vars(ForkingPickler)["loads"] is loads, type(ForkingPickler(open("/dev/null", "wb")).loads))
reader, writer = multiprocessing.Pipe(False)
writer.send(1)
print(reader.recv())
"""


def test_what_a_program_put_there_before_stays(python, script):
    same([python, script(REPLACED_BEFORE)])


# Handlers raise all the time; a message in hand is lost then with and without the agent, an exception never.
SIGNALS = (
    HEARD
    + """
import multiprocessing, pickle, signal, sys, time
from multiprocessing.reduction import ForkingPickler
class Out(Exception):
    pass
fired = caught = 0
def handler(*_):
    global fired
    fired += 1
    raise Out
signal.signal(signal.SIGALRM, handler)
data, kept = pickle.dumps(list(range(20))), []
while not heard() or fired < 300:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003)
        while True:
            assert ForkingPickler.loads(data)[3] == 3
            kept.append(b"x" * 20_000)
            if len(kept) > 20_000:
                kept.clear()
    except Out as error:
        caught += 1
        traceback = error.__traceback__
        names = set()
        while traceback is not None:
            names.add(traceback.tb_frame.f_code.co_filename)
            traceback = traceback.tb_next
        assert names == {__file__}, names
print(fired == caught)
"""
)


def test_no_exception_of_a_handler_is_lost_in_it(script):
    done, _ = watched([sys.executable, script(SIGNALS)], until=several(2, "memory"), text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


# A class that is taken apart while a thread asks it, and objects whose unpickling does as well.
TAKEN_APART = """
import gc, multiprocessing, pickle, sys, threading
from multiprocessing.reduction import ForkingPickler
sys.setswitchinterval(1e-6)
placed, real, stop = vars(ForkingPickler)["loads"], pickle.loads, threading.Event()
data = pickle.dumps([1])
def asks():
    while not stop.is_set():
        try:
            assert ForkingPickler.loads(data) == [1]
        except AttributeError:
            pass
threads = [threading.Thread(target=asks) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(20_000):
    del ForkingPickler.loads
    ForkingPickler.loads = placed if number % 2 else real
stop.set()
for thread in threads:
    thread.join()
class Deletes:
    def __reduce__(self):
        return delattr, (ForkingPickler, "loads")
reader, writer = multiprocessing.Pipe(False)
writer.send(Deletes())
del placed
print(reader.recv())
gc.collect()
ForkingPickler.loads = real
def end(*_):
    raise SystemExit(7)
class Ends:
    def __reduce__(self):
        return end, ()
writer.send(Ends())
reader.recv()
"""


def test_a_class_that_is_taken_apart(python, script):
    done, _ = same([python, script(TAKEN_APART)])
    assert done.returncode == 7


METHODS = """
import multiprocessing, sys
from multiprocessing import managers
def work(number):
    if number == 3:
        raise ValueError(number)
    return [number] * 3
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(work, range(3)), [*pool.imap(work, range(3))])
        try:
            pool.apply(work, (3,))
        except ValueError as error:
            print(repr(error))
    with managers.SyncManager(ctx=context) as manager:
        shared = manager.list([1])
        shared.append([2])
        print(list(shared))
    queue = context.Queue()
    queue.put({1: 2}); print(queue.get())
    queue.close(); queue.join_thread()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools_managers_and_queues(python, script, method):
    same([python, script(METHODS), method])


OF_TORCH = """
import multiprocessing, pickle, torch
import torch.multiprocessing as mp
from multiprocessing.reduction import ForkingPickler
from torch.multiprocessing import reductions
print(ForkingPickler.loads is pickle.loads, mp.reductions.ForkingPickler is ForkingPickler)
tensor = torch.arange(6.0).reshape(2, 3)
for one in (tensor, tensor.t(), torch.nn.Parameter(tensor), tensor.to(torch.bfloat16), torch.sparse_coo_tensor([[0]], [1.0], (3,))):
    reader, writer = mp.Pipe(False)
    writer.send(one)
    print(reader.recv())
def double(one):
    return one * 2
if __name__ == "__main__":
    with mp.get_context("fork").Pool(1) as pool:
        print(pool.map(double, [tensor]))
"""


def test_torchs_own_reductions(script):
    pytest.importorskip("torch")
    same([sys.executable, "-W", "ignore", script(OF_TORCH)])
