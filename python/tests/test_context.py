"""`ullage.context`: what a DataLoader gets through the arena is what it gets without workers."""

import copy
import gc
import multiprocessing
import multiprocessing.connection
import os
import pickle
import queue
import signal
import subprocess
import sys
import textwrap
import warnings

import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter  # noqa: E402

import ullage  # noqa: E402
from processes import gone, until_it_waits  # noqa: E402
from ullage import _arena as arena_module  # noqa: E402
from ullage import _context as context_module  # noqa: E402
from ullage import _reducers  # noqa: E402
from ullage._context import Event, Queue  # noqa: E402
from ullage.errors import Error, WorkerDied  # noqa: E402

METHODS = ["fork", "spawn", "forkserver"]
# Each worker of spawn imports torch anew, three seconds of a core: what depends little on how it was started.
MOSTLY = ["fork", pytest.param("spawn", marks=pytest.mark.thorough), "forkserver"]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Rows(torch.utils.data.Dataset):
    def __init__(self, length, width=16):
        self.x = torch.arange(length * width, dtype=torch.float32).reshape(length, width)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], index


class Tensors(torch.utils.data.Dataset):
    """Many small tensors, each with a storage of its own."""

    def __init__(self, count):
        self.tensors = [torch.full((20,), float(n)) for n in range(count)]

    def __len__(self):
        return len(self.tensors)

    def __getitem__(self, index):
        return self.tensors[index]


class Zoo(torch.utils.data.Dataset):
    """Whatever a tensor can be."""

    def __len__(self):
        return len(self.items())

    @staticmethod
    def items():
        torch.manual_seed(0)
        base = torch.arange(1000, dtype=torch.float32)
        tagged = torch.ones(5000)
        tagged.note = {"a": 1}
        items = [
            torch.randn(40, 50, dtype=torch.bfloat16),
            torch.randn(4000).to(torch.float8_e4m3fn),
            torch.randn(30, dtype=torch.complex64).conj(),
            torch.randn(3000, dtype=torch.complex64).conj().imag,
            torch.randint(0, 255, (9000,), dtype=torch.uint8)[17:8000:3],
            torch.zeros(0, 3),
            torch.zeros(()),
            torch.randn(3, 4).expand(2000, 3, 4),
            torch.randn(20, 30, 40).permute(2, 0, 1),
            torch.nn.Parameter(torch.randn(5000)),
            torch.randn(5000, requires_grad=True),
            tagged,
            (base[:600], base[300:], base),
            torch.eye(50).to_sparse(),
            torch.eye(50).to_sparse_csr(),
            torch.quantize_per_tensor(torch.randn(5000), 0.1, 3, torch.quint8),
            torch.tensor([True, False] * 5000),
            base.untyped_storage(),
            {"nested": [torch.ones(3000, dtype=torch.int64), "text", None, b"bytes" * 3000]},
        ]
        return items

    def __getitem__(self, index):
        return self.items()[index]


def same(a, b):
    if isinstance(a, torch.Tensor):
        assert type(a) is type(b) and a.dtype == b.dtype and a.layout == b.layout and a.shape == b.shape
        assert a.requires_grad == b.requires_grad and vars(a) == vars(b)
        if a.layout is torch.strided:
            assert a.stride() == b.stride()
            if not a.is_quantized:
                assert a.is_conj() == b.is_conj() and a.is_neg() == b.is_neg()
                assert torch.equal(a.reshape(-1).to(torch.complex64), b.reshape(-1).to(torch.complex64))
            else:
                assert torch.equal(a, b)
        else:
            assert torch.equal(a.to_dense(), b.to_dense())
    elif isinstance(a, torch.UntypedStorage):
        assert list(a) == list(b)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, other in zip(a, b):
            same(one, other)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            same(a[key], b[key])
    else:
        assert a == b


def loader(dataset, method, **settings):
    settings.setdefault("num_workers", 2)
    return torch.utils.data.DataLoader(dataset, multiprocessing_context=ullage.context(method), **settings)


@pytest.mark.parametrize("method", MOSTLY)
def test_batches_are_those_of_a_loader_without_workers(method):
    dataset = Rows(300)
    plain = list(torch.utils.data.DataLoader(dataset, batch_size=7))
    for _ in range(2):
        got = list(loader(dataset, method, batch_size=7))
        same(got, plain)


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_tensor_arrives_as_it_was_sent(method):
    got = list(loader(Zoo(), method, batch_size=None, num_workers=1))
    same(got, Zoo.items())
    first, second, whole = got[12]
    first[300] = -1
    assert whole[300] == -1 and second[0] == -1, "they share a storage, as before"


@pytest.mark.parametrize("method", MOSTLY[1:])
def test_many_tensors_need_one_mapping_and_no_descriptors(method):
    dataset = Tensors(3000)
    before = len(os.listdir("/proc/self/fd"))
    got = loader(dataset, method, batch_size=100)
    batches = iter(got)
    total = float(next(batches).sum())
    with open(f"/proc/{batches._workers[0].pid}/maps") as file:
        mappings = file.read()
    assert mappings.count("memfd:ullage-dataset") <= 1
    assert mappings.count("memfd:ullage-arena") == 1 and "/torch_" not in mappings
    assert len(os.listdir("/proc/self/fd")) - before <= 12
    total += sum(float(batch.sum()) for batch in batches)
    assert total == sum(20.0 * n for n in range(3000))


def test_what_collate_made_is_handed_over_in_place():
    class Where(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return torch.full((1 << 16,), float(index))

    got = list(loader(Where(), "fork", batch_size=2, num_workers=1))
    arena = ullage.context.__globals__["arena"]()
    assert all(arena.contains(batch.data_ptr()) for batch in got)
    assert [float(batch.mean()) for batch in got] == [0.5, 2.5, 4.5, 6.5]


def test_a_batch_that_is_kept_keeps_its_bytes():
    kept = []
    for number, (x, _) in enumerate(loader(Rows(4000, 1024), "fork", batch_size=8)):
        if number % 50 == 0:
            kept.append((number, x.detach(), x.numpy(), torch.nn.Parameter(x).data))
    expected = Rows(4000, 1024).x
    for number, *views in kept:
        for view in views:
            assert torch.equal(torch.as_tensor(view), expected[number * 8 : number * 8 + 8])


def test_memory_is_used_again():
    arena = ullage.context.__globals__["arena"]()
    sizes = []
    for _ in range(4):
        for _batch in loader(Rows(2000, 4096), "fork", batch_size=32):
            pass
        sizes.append(arena.report()["committed"])
    # A batch more may have been in flight in each worker at some moment.
    assert sizes[3] <= sizes[1] + 2 * 32 * 4096 * 4 + (256 << 10), sizes


def test_moving_an_arena_tensor_leaves_its_old_views_alone():
    batches = iter(loader(Rows(4000, 4096), "fork", batch_size=16, num_workers=1))
    x, _ = next(batches)
    view = x.numpy()
    before = view.copy()
    x.share_memory_()
    for _ in range(100):
        next(batches)
    assert (view == before).all()
    assert torch.equal(x, torch.as_tensor(before))


class Buffered:
    """Offers its bytes out of band to whoever asks for protocol 5."""

    def __init__(self, text):
        self.text = text

    def __reduce_ex__(self, protocol):
        return Buffered, (pickle.PickleBuffer(self.text) if protocol >= 5 else self.text,)


def arrays():
    numpy = pytest.importorskip("numpy")
    frozen = numpy.ones((50, 40), dtype=">f8")
    frozen.flags.writeable = False
    return [
        numpy.frombuffer(bytes(9000), "uint8"),
        numpy.frombuffer(bytes(9), "uint8"),
        numpy.arange(2000, dtype=">f4"),
        numpy.zeros(300, dtype=[("a", ">i4"), ("b", "f8"), ("c", "S5")]),
        numpy.broadcast_to(numpy.zeros(1000), (2, 1000)),
        numpy.asfortranarray(numpy.arange(2000.0).reshape(40, 50)),
        numpy.arange(2000).astype("datetime64[s]"),
        frozen,
        frozen[:, ::2],
    ]


def traits(array):
    flags = array.flags
    return array.dtype.str, array.dtype.descr, array.shape, array.strides, flags.writeable, flags.fnc, array.tolist()


@pytest.mark.parametrize("number", range(9))
def test_an_array_arrives_as_torch_hands_it_over(number):
    array, queue_ = arrays()[number], Queue()
    queue_.put(array)
    got = queue_.get()
    assert traits(got) == traits(pickle.loads(bytes(multiprocessing.reduction.ForkingPickler.dumps(array))))


def test_a_large_array_travels_beside_the_pickle_and_lies_in_the_arena():
    numpy = pytest.importorskip("numpy")
    queue_ = Queue()
    for array in (numpy.ones(10_000), numpy.frombuffer(bytes(80_000), "f8")):
        before = queue_._queue.sent[0]
        queue_.put(array)
        assert queue_._queue.sent[0] - before == 80_000
        got = queue_.get()
        assert context_module.arena().contains(got.__array_interface__["data"][0])
        got += 1


def test_a_class_with_buffers_is_asked_what_torch_asks_it():
    queue_ = Queue()
    queue_.put(Buffered(b"x" * 9000))
    expected = pickle.loads(bytes(multiprocessing.reduction.ForkingPickler.dumps(Buffered(b"x" * 9000))))
    assert type(queue_.get().text) is type(expected.text)


def test_a_reducer_of_the_programs_own_for_arrays_is_used(monkeypatch):
    numpy = pytest.importorskip("numpy")
    monkeypatch.setitem(
        multiprocessing.reduction.ForkingPickler._extra_reducers, numpy.ndarray, lambda a: (len, ("ab",))
    )
    queue_ = Queue()
    queue_.put(numpy.ones(10_000))
    assert queue_.get() == 2


class OwnLoader:
    """Goes through torch's iterator and is no DataLoader, as fastai's."""

    _IterableDataset_len_called, _auto_collation, drop_last = None, False, False
    generator, prefetch_factor, in_order, timeout, persistent_workers = None, 2, True, 0, False
    pin_memory, pin_memory_device, worker_init_fn = False, "", None
    _dataset_kind = torch.utils.data.dataloader._DatasetKind.Map

    @staticmethod
    def collate_fn(item):
        return item

    def __init__(self, dataset, workers, context=torch.multiprocessing):
        self.dataset, self.num_workers = dataset, workers
        self._index_sampler = [[n] for n in range(len(dataset))]
        self.multiprocessing_context = context

    def __iter__(self):
        return torch.utils.data.dataloader._MultiProcessingDataLoaderIter(self)


class PassedOn(torch.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return torch.full((100,), float(index[0]))


@pytest.fixture
def installed():
    ullage.install()
    yield
    ullage.uninstall()


def test_a_loader_that_is_no_dataloader_travels_through_the_arena(installed):
    arena = context_module.arena()
    before = arena.report()["copied"]
    got = list(OwnLoader(PassedOn(), 1))
    assert [float(x[0]) for x in got] == [0, 1, 2] and not any(x.is_shared() for x in got)
    assert arena.report()["copied"] - before == 3 * 400
    ullage.uninstall()
    assert all(x.is_shared() for x in OwnLoader(PassedOn(), 1))


class Nameless(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return multiprocessing.current_process().name.rstrip("0123456789")


@pytest.mark.parametrize("chosen", [None, *MOSTLY, multiprocessing.get_context()])
@pytest.mark.parametrize("method", [None, "zygote"])
def test_workers_have_the_names_that_they_have_without(chosen, method):
    def names():
        return list(DataLoader(Nameless(), batch_size=None, num_workers=1, multiprocessing_context=chosen))

    without = names()
    ullage.install(method=method)
    try:
        assert names() == without
    finally:
        ullage.uninstall()


def test_a_loader_fails_as_it_does_without():
    class Local(Nameless):
        pass

    def failure():
        with warnings.catch_warnings(record=True) as warned, pytest.raises(Exception) as failed:
            warnings.simplefilter("always")
            list(DataLoader(Local(), num_workers=1, multiprocessing_context="spawn"))
        frames = [(one.path, one.name) for one in failed.traceback]
        places = [(one.filename, one.lineno) for one in warned if one.category is UserWarning]
        return type(failed.value), places, frames[: [name for _, name in frames].index("start")]

    without = failure()
    ullage.install()
    try:
        assert failure() == without
    finally:
        ullage.uninstall()


def test_strict_refuses_a_loader_of_any_kind_whose_context_is_somebody_elses(installed, monkeypatch):
    class Own(type(multiprocessing.get_context("fork"))):
        pass

    assert all(x.is_shared() for x in OwnLoader(PassedOn(), 1, Own()))
    monkeypatch.setattr(_reducers, "strict", True)
    with pytest.raises(Error, match="ULLAGE_STRICT"):
        iter(OwnLoader(PassedOn(), 1, Own()))


TRAVELLED = """
import torch, ullage
from ullage import _arena
assert _arena.travelled() is None
ullage.install()
print(_arena.travelled())
list(torch.utils.data.DataLoader(torch.ones(10, 1000), num_workers=1))
made = _arena.travelled()
print(made["copied"] + made["in_place"] >= 40000, made["reserved"] == _arena.arena().report()["reserved"] > 1 << 20)
"""


def test_what_travelled_is_none_where_nothing_was_asked_and_zero_where_nothing_went():
    done = subprocess.run([sys.executable, "-c", TRAVELLED], capture_output=True, text=True, timeout=600)
    zeros = {"copied": 0, "in_place": 0, "passed_by": 0, "reserved": 0}
    assert done.stdout.splitlines() == [str(zeros), "True True"], done.stderr


class Unpicklable(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return (lambda: 1) if index == 2 else index


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_that_cannot_be_pickled_raises_in_the_trainer(method):
    batches = iter(loader(Unpicklable(), method, batch_size=None, num_workers=1))
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.raises(Exception, match="pickle.*|sending a batch"):
        next(batches)


class Dies(torch.utils.data.Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        if index == 5:
            # torch's handler of SIGCHLD raises in whatever the trainer runs: it must wait for this batch by then.
            until_it_waits(os.getppid())
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(10)


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_worker_is_told_at_once_and_by_name(method, monkeypatch):
    # Torch asks after its workers every 5 s. Where that is never, only the queue itself can have told.
    monkeypatch.setattr(_MultiProcessingDataLoaderIter._try_get_data, "__defaults__", (600.0,))
    batches = iter(loader(Dies(), method, batch_size=1, num_workers=1))
    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        for _ in range(10):
            next(batches)
    cause = caught.value.__cause__
    assert isinstance(cause, WorkerDied) and isinstance(cause, queue.Empty) and isinstance(cause, Error)
    assert cause.exitcode == -signal.SIGKILL and "SIGKILL" in str(cause)
    if method != "forkserver":  # there it is not the trainer's child: torch's signal handler does not see it
        assert "is killed by signal: Killed" in str(cause.__cause__), "torch's own words, too"


TRAINER = """
import os, signal, sys, time
import torch, ullage
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 1 << 30
    def __getitem__(self, index): return torch.ones(100)
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2, multiprocessing_context=ullage.context(sys.argv[1]))
    batches = iter(loader)
    next(batches)
    print(*[worker.pid for worker in batches._workers], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("method", METHODS)
def test_workers_end_with_their_trainer(method, tmp_path):
    program = tmp_path / "trainer.py"
    program.write_text(TRAINER)
    done = subprocess.run([sys.executable, str(program), method], capture_output=True, text=True, timeout=600)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    assert gone(*pids)


class Epochs(torch.utils.data.Dataset):
    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.epoch


@pytest.mark.parametrize("method", MOSTLY)
def test_a_change_of_the_dataset_reaches_the_next_workers(method):
    dataset = Epochs()
    batches = loader(dataset, method, batch_size=None, num_workers=1)
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        assert list(batches) == [epoch] * 4


class Collects:
    """Its item: by how many bytes a full collection grows what this process does not share."""

    def __init__(self):
        self.kept = [{"number": number} for number in range(200_000)]  # 45 MB, with what the collector writes into

    def __len__(self):
        return 1

    def __getitem__(self, index):
        before = private_dirty()
        gc.collect()
        grown = private_dirty() - before
        cycle = []
        cycle.append(cycle)
        del cycle
        return grown, gc.collect()


def private_dirty():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Private_Dirty:"))


def test_a_collection_in_a_forked_worker_copies_nothing_of_what_it_inherited():
    collects = Collects()
    shared = private_dirty()
    loader = DataLoader(collects, batch_size=None, num_workers=1, multiprocessing_context=ullage.context("fork"))
    ((grown, collected),) = loader
    assert shared > 40 << 20
    assert grown < 4 << 20
    assert collected == 1, "its own it collects"


def test_a_context_can_be_pickled_and_copied():
    for method in METHODS:
        one = ullage.context(method)
        assert pickle.loads(pickle.dumps(one)) is one and copy.deepcopy(one) is one
        assert one.get_start_method() == method
    with pytest.raises(Error, match="fork, spawn, forkserver"):
        ullage.context("zygot")


def test_install_gives_every_loader_the_arena_and_uninstall_takes_it_back():
    plain = torch.utils.data.DataLoader(Rows(8), num_workers=1)
    own = torch.utils.data.DataLoader(Rows(8), num_workers=1, multiprocessing_context="spawn")
    without = torch.utils.data.DataLoader(Rows(8))
    ullage.install()
    try:
        assert type(plain.multiprocessing_context) is type(ullage.context(None))
        assert own.multiprocessing_context is ullage.context("spawn")
        assert without.multiprocessing_context is None
    finally:
        ullage.uninstall()
    assert plain.multiprocessing_context is None


def test_the_off_switch_leaves_loaders_to_torch(monkeypatch):
    monkeypatch.setenv("ULLAGE_DISABLE", "1")
    assert type(ullage.context("spawn")) is type(multiprocessing.get_context("spawn"))
    plain = torch.utils.data.DataLoader(Rows(8), num_workers=1)
    ullage.install()
    assert plain.multiprocessing_context is None
    with pytest.raises(Error, match="fork, spawn, forkserver"):
        ullage.context("zygot")


def test_a_queue_copies_what_is_put():
    one = Queue()
    x = torch.arange(5000.0)
    one.put({"x": x, "n": 1})
    x.zero_()
    got = one.get(timeout=600)
    assert got["n"] == 1 and torch.equal(got["x"], torch.arange(5000.0))
    assert one.empty()
    with pytest.raises(queue.Empty):
        one.get(timeout=0.01)
    with pytest.raises(queue.Empty):
        one.get_nowait()


class Late(Exception):
    """What the handler of a signal raises."""


class SentAndInterrupted:
    """A queue's native part; a handler raises as soon as a message has left."""

    def __init__(self, native):
        self.native = native

    def __getattr__(self, name):
        return getattr(self.native, name)

    def send(self, encoder):
        self.native.send(encoder)
        raise Late


def test_what_was_sent_as_a_handler_raised_is_sent_once(monkeypatch):
    one = Queue()
    monkeypatch.setattr(context_module, "_for_the_trainer", lambda _: "in its place")
    monkeypatch.setattr(one, "_queue", SentAndInterrupted(one._queue))
    with pytest.raises(Late):
        one.put("a batch")
    assert one.get(timeout=600) == "a batch"
    assert one.empty()


def test_a_forked_child_is_told_of_no_process_of_its_parents():
    one = Queue()
    process = multiprocessing.get_context("fork").Process(target=os._exit, args=(3,))
    process.start()
    one._watch(process)
    assert multiprocessing.connection.wait([process.sentinel], 600)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            one.get(timeout=0.2)
        except WorkerDied:
            code = 2
        except queue.Empty:
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    with pytest.raises(WorkerDied):
        one.get(timeout=600)


def test_an_unpicklable_object_raises_where_it_is_put():
    one = Queue()
    with pytest.raises(Exception, match="pickle|local object"):
        one.put(lambda: 1)
    one.put(2)
    assert one.get(timeout=600) == 2


def test_numpy_arrays_and_bytes_travel_beside_the_pickle():
    numpy = pytest.importorskip("numpy")
    one = Queue()
    sent = {"a": numpy.arange(10_000.0).reshape(100, 100), "f": numpy.asfortranarray(numpy.ones((90, 80)))}
    one.put(sent)
    got = one.get(timeout=600)
    assert all((got[key] == sent[key]).all() and got[key].flags.writeable for key in sent)


def _set_event(event, answers):
    answers.put(event.wait(600))
    event.clear()
    answers.put(event.is_set())


@pytest.mark.parametrize("method", MOSTLY)
def test_events_and_queues_work_between_processes(method):
    context = ullage.context(method)
    event, answers = context.Event(), context.Queue()
    process = context.Process(target=_set_event, args=(event, answers))
    process.start()
    assert not event.is_set() and not event.wait(0.01)
    event.set()
    assert answers.get(timeout=600) is True
    assert answers.get(timeout=600) is False
    process.join(600)
    assert process.exitcode == 0 and not event.is_set()


def test_a_sized_queue_is_refused_with_what_to_do():
    with pytest.raises(Error, match="maxsize"):
        ullage.context("fork").Queue(3)


def test_nothing_can_be_pickled_outside_of_a_start():
    for one in (Queue(), Event()):
        with pytest.raises(RuntimeError, match="inheritance"):
            pickle.dumps(one)


def test_a_program_without_torch_can_use_queues():
    program = textwrap.dedent(
        """
        import sys, ullage
        queue = ullage.context("fork").Queue()
        queue.put({"a": b"x" * 100000})
        assert len(queue.get(timeout=600)["a"]) == 100000
        assert "torch" not in sys.modules
        """
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)


# What the arena says of itself.

RETAINED = """
import warnings, torch, ullage
from torch.utils.data import DataLoader
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 200
    def __getitem__(self, index): return torch.full((64, 1024), index)
if __name__ == "__main__":
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loader = DataLoader(Rows(), num_workers=2, batch_size=1, multiprocessing_context=ullage.context("fork"))
        kept = list(loader)
    import os
    told = [str(w.message) for w in caught if w.category is RuntimeWarning and "arena" in str(w.message)]
    assert len(kept) == 200 and all(int(batch[0, 0, 0]) == n for n, batch in enumerate(kept))
    print(len(told), f"this process ({os.getpid()}) holds" in told[0] if told else "")
    report = ullage._context.arena().report()
    del kept, loader
    import gc; gc.collect()
    ullage._context.arena().trim()
    print(report["committed"] > 100e6, ullage._context.arena().report()["committed"] < 20e6)
"""


@pytest.mark.parametrize(("cap", "warned"), [(30 << 20, True), (1 << 40, False)])
def test_batches_that_are_kept_are_told_of_once_and_their_memory_goes_back(script, cap, warned):
    done = subprocess.run(
        [sys.executable, script(RETAINED)],
        env={**os.environ, "ULLAGE_ARENA_SOFT_CAP": str(cap)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["1 True" if warned else "0 ", "True True"]


class Sneaky:
    """Has torch move its tensor into a segment of torch's own while it is pickled."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        _, nbytes = self.tensor.untyped_storage()._share_fd_cpu_()
        return torch.ones, (nbytes // 4,)


def test_strict_makes_torchs_own_way_an_error(monkeypatch):
    queue = ullage.context("fork").Queue()
    queue.put(Sneaky(torch.ones(4)))
    assert queue.get(timeout=600).tolist() == [1] * 4
    monkeypatch.setattr(_reducers, "strict", True)
    with pytest.raises(Error, match="torch's own shared memory"):
        queue.put(Sneaky(torch.ones(4)))
    shared = torch.ones(4).share_memory_()
    queue.put([torch.ones(4), torch.ones(2, 3).T, shared])
    assert [one.sum().item() for one in queue.get(timeout=600)] == [4, 6, 4]
    # Outside of ullage's messages torch's way is as free as before.
    other = torch.multiprocessing.get_context("fork").SimpleQueue()
    other.put(torch.ones(4))
    assert other.get().tolist() == [1] * 4


def test_strict_refuses_a_loader_whose_context_is_somebody_elses(monkeypatch):
    class Own(multiprocessing.context.ForkContext):
        pass

    monkeypatch.delenv("ULLAGE_STRICT", raising=False)
    monkeypatch.setattr(_reducers, "strict", False)
    loader = DataLoader(range(4), num_workers=1, multiprocessing_context=Own())
    try:
        ullage.install()
        assert len(list(loader)) == 4
        ullage.install(strict=True)
        with pytest.raises(Error, match="of its own making"):
            list(loader)
    finally:
        ullage.uninstall()


def test_how_bytes_travelled_is_counted():
    context_module.arena()
    before = arena_module.travelled()
    shared = torch.zeros(1000).share_memory_()
    queue = ullage.context("fork").Queue()
    queue.put([torch.zeros(1000), shared])
    queue.get(timeout=600)
    loader = DataLoader(torch.zeros(64, 1000), 32, num_workers=1, multiprocessing_context=ullage.context("fork"))
    assert len(list(loader)) == 2
    after = arena_module.travelled()
    # Also the queue's own indices are messages, without a tensor.
    assert {name: after[name] - before[name] for name in after} == {
        "copied": 4000,
        "in_place": 64 * 4000,
        "passed_by": 4000,
        "reserved": 0,
    }
