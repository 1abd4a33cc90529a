"""`ullage.context`: what a DataLoader gets through the arena is what it gets without workers."""

import copy
import gc
import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import textwrap
import time

import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402

import ullage  # noqa: E402
from ullage import _context as context_module  # noqa: E402
from ullage import _pickling  # noqa: E402
from ullage._context import Event, Queue  # noqa: E402
from ullage.errors import Error, WorkerDied  # noqa: E402

METHODS = ["fork", "spawn", "forkserver"]
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


@pytest.mark.parametrize("method", METHODS)
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


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
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
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(10)


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_worker_is_told_at_once_and_by_name(method):
    batches = iter(loader(Dies(), method, batch_size=1, num_workers=1))
    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        for _ in range(10):
            start = time.monotonic()
            next(batches)
    assert time.monotonic() - start < 2
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
    done = subprocess.run([sys.executable, str(program), method], capture_output=True, text=True, timeout=60)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    deadline = time.monotonic() + 2.5
    while time.monotonic() < deadline and any(os.path.exists(f"/proc/{pid}") for pid in pids):
        time.sleep(0.02)
    alive = [
        pid
        for pid in pids
        if os.path.exists(f"/proc/{pid}") and open(f"/proc/{pid}/stat").read().split(")")[1][1] != "Z"
    ]
    assert not alive


class Epochs(torch.utils.data.Dataset):
    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.epoch


@pytest.mark.parametrize("method", METHODS)
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
        assert plain.multiprocessing_context is ullage.context(None)
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
    got = one.get(timeout=5)
    assert got["n"] == 1 and torch.equal(got["x"], torch.arange(5000.0))
    assert one.empty()
    with pytest.raises(queue.Empty):
        one.get(timeout=0.01)
    with pytest.raises(queue.Empty):
        one.get_nowait()


def test_an_unpicklable_object_raises_where_it_is_put():
    one = Queue()
    with pytest.raises(Exception, match="pickle|local object"):
        one.put(lambda: 1)
    one.put(2)
    assert one.get(timeout=5) == 2


def test_numpy_arrays_and_bytes_travel_beside_the_pickle():
    numpy = pytest.importorskip("numpy")
    one = Queue()
    sent = {"a": numpy.arange(10_000.0).reshape(100, 100), "f": numpy.asfortranarray(numpy.ones((90, 80)))}
    one.put(sent)
    got = one.get(timeout=5)
    assert all((got[key] == sent[key]).all() and got[key].flags.writeable for key in sent)


def _set_event(event, answers):
    answers.put(event.wait(20))
    event.clear()
    answers.put(event.is_set())


@pytest.mark.parametrize("method", METHODS)
def test_events_and_queues_work_between_processes(method):
    context = ullage.context(method)
    event, answers = context.Event(), context.Queue()
    process = context.Process(target=_set_event, args=(event, answers))
    process.start()
    assert not event.is_set() and not event.wait(0.01)
    event.set()
    assert answers.get(timeout=60) is True
    assert answers.get(timeout=60) is False
    process.join(20)
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
        assert len(queue.get(timeout=5)["a"]) == 100000
        assert "torch" not in sys.modules
        """
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


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
        timeout=120,
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
    assert queue.get(timeout=20).tolist() == [1] * 4
    monkeypatch.setattr(_pickling, "strict", True)
    with pytest.raises(Error, match="torch's own shared memory"):
        queue.put(Sneaky(torch.ones(4)))
    shared = torch.ones(4).share_memory_()
    queue.put([torch.ones(4), torch.ones(2, 3).T, shared])
    assert [one.sum().item() for one in queue.get(timeout=20)] == [4, 6, 4]
    # Outside of ullage's messages torch's way is as free as before.
    other = torch.multiprocessing.get_context("fork").SimpleQueue()
    other.put(torch.ones(4))
    assert other.get().tolist() == [1] * 4


def test_strict_refuses_a_loader_whose_context_is_somebody_elses(monkeypatch):
    class Own(multiprocessing.context.ForkContext):
        pass

    monkeypatch.delenv("ULLAGE_STRICT", raising=False)
    monkeypatch.setattr(_pickling, "strict", False)
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
    before = context_module.travelled() or {"copied": 0, "in_place": 0, "passed_by": 0}
    shared = torch.zeros(1000).share_memory_()
    queue = ullage.context("fork").Queue()
    queue.put([torch.zeros(1000), shared])
    queue.get(timeout=20)
    loader = DataLoader(torch.zeros(64, 1000), 32, num_workers=1, multiprocessing_context=ullage.context("fork"))
    assert len(list(loader)) == 2
    after = context_module.travelled()
    # Also the queue's own indices are messages, without a tensor.
    assert {name: after[name] - before[name] for name in after} == {
        "copied": 4000,
        "in_place": 64 * 4000,
        "passed_by": 4000,
    }
