"""`ullage.context("zygote")`: one process takes over the dataset, all workers are its children, and all notice each end."""

import copy
import gc
import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info  # noqa: E402
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter  # noqa: E402

import ullage  # noqa: E402
from processes import alive, gone  # noqa: E402
from test_context import Dies, Epochs, Rows, Tensors, Zoo, same  # noqa: E402
from ullage import _native  # noqa: E402
from ullage._zygote import main, messages, packing, trainer, unpickling  # noqa: E402
from ullage.errors import Error, WorkerDied  # noqa: E402


def loader(dataset, **settings):
    settings.setdefault("num_workers", 2)
    return DataLoader(dataset, multiprocessing_context=ullage.context("zygote"), **settings)


class Where(Dataset):
    """Each item says who made it: the zygote and the worker."""

    def __init__(self, length=8, extra=None):
        self.length, self.extra = length, extra

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return os.getppid(), os.getpid()


def family(dataset, **settings):
    """The zygotes and the workers of one epoch."""
    pairs = list(loader(dataset, batch_size=None, **settings))
    return {zygote for zygote, _ in pairs}, {worker for _, worker in pairs}


# --- what workers get ---------------------------------------------------------------------------------------


def test_batches_are_those_of_a_loader_without_workers():
    dataset = Rows(300)
    plain = list(DataLoader(dataset, batch_size=7))
    batches = loader(dataset, batch_size=7)
    for _ in range(2):
        same(list(batches), plain)


class Holds(Dataset):
    """Has every kind of tensor, arrays, and many small tensors."""

    def __init__(self):
        self.items = Zoo.items()
        self.more = Tensors(2000).tensors
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            self.items.append(numpy.arange(10_000.0).reshape(100, 100))
            self.items.append(numpy.asfortranarray(numpy.ones((90, 80))))

    def __len__(self):
        return len(self.items) + 1

    def __getitem__(self, index):
        return self.items[index] if index < len(self.items) else self.more


def as_it_is(item):
    return item


def test_a_dataset_of_every_kind_of_tensor_is_taken_over_as_it_is():
    dataset = Holds()
    got = list(loader(dataset, batch_size=None, num_workers=1, collate_fn=as_it_is))
    for index, item in enumerate(got[:-1]):
        expected = dataset.items[index]
        if isinstance(expected, (torch.Tensor, tuple, dict, torch.UntypedStorage)):
            same(item, expected)
        else:
            assert (item == expected).all() and item.flags.f_contiguous == expected.flags.f_contiguous
    same(got[-1], dataset.more)
    first, second, whole = got[12]
    first[300] = -1
    assert whole[300] == -1 and second[0] == -1, "they share a storage, as before"


class Shared(Dataset):
    """More tensors in shared memory of the user's own than descriptors fit into one message."""

    def __init__(self):
        self.tensors = [torch.full((4,), float(n)).share_memory_() for n in range(300)]

    def __len__(self):
        return len(self.tensors)

    def __getitem__(self, index):
        return float(self.tensors[index][0])


def test_what_the_user_shared_stays_shared():
    dataset = Shared()
    batches = loader(dataset, batch_size=None, num_workers=1)
    assert list(batches) == [float(n) for n in range(300)]
    dataset.tensors[7].fill_(-1)
    assert list(batches)[7] == -1
    assert len(trainer._zygotes) == 1 or trainer._zygotes[-1].packed.fds, "the same memory is no change"


class Collating(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return index

    def collate(self, items):
        return get_worker_info().dataset is self


def test_collate_fn_and_dataset_are_taken_over_together():
    dataset = Collating()
    assert list(loader(dataset, batch_size=1, collate_fn=dataset.collate)) == [True, True]


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        yield from range(info.id, 10, info.num_workers)


def test_an_iterable_dataset_whose_workers_end_one_by_one():
    assert sorted(loader(Stream(), batch_size=None)) == list(range(10))


class Environment(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return os.environ.get("ULLAGE_TEST_WORD"), os.environ.get("OMP_NUM_THREADS")


def test_workers_have_the_environment_that_the_trainer_has_now(monkeypatch):
    batches = loader(Environment(), batch_size=None, num_workers=1, collate_fn=as_it_is)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for word in ("first", "second"):
        monkeypatch.setenv("ULLAGE_TEST_WORD", word)
        assert list(batches) == [(word, None)]


class Multiplies(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        torch.set_num_threads(4)
        x = torch.ones(400, 400)
        total = float((x @ x).sum() + torch.sin(torch.ones(1 << 20)).sum() * 0)
        return total, len(os.listdir("/proc/self/task"))


def test_a_worker_that_uses_threads_does_not_hang():
    for total, threads in loader(Multiplies(), batch_size=None, timeout=600):
        assert total == 400.0**3 and threads > 2


# --- one zygote, as long as it is wanted --------------------------------------------------------------------


def test_epochs_share_a_zygote():
    dataset = Where()
    zygotes, workers = family(dataset)
    again, others = family(dataset)
    assert len(zygotes) == 1 and zygotes == again and not workers & others
    assert zygotes != {os.getpid()}


def test_a_change_of_the_dataset_reaches_the_next_workers_and_the_old_zygote_ends():
    dataset = Epochs()
    batches = loader(dataset, batch_size=None, num_workers=1)
    before = None
    for epoch in (1, 2, 3):
        dataset.set_epoch(epoch)
        assert list(batches) == [epoch] * 4
        now = trainer._zygotes[-1].pid
        assert now != before and (before is None or gone(before))
        before = now


def test_a_tensor_changed_in_place_reaches_the_next_workers():
    dataset = Rows(10)
    batches = loader(dataset, batch_size=None)
    assert [float(x[0]) for x, _ in batches] == [16.0 * n for n in range(10)]
    dataset.x[3, 0] = -1
    assert [float(x[0]) for x, _ in batches][3] == -1


def test_the_zygote_ends_with_its_dataset():
    dataset = Where()
    zygotes, _ = family(dataset)
    del dataset
    gc.collect()
    assert gone(*zygotes)


def test_loaders_of_two_datasets_keep_their_zygotes():
    one, other = Where(8, "one"), Where(8, "other")
    first, second = loader(one, batch_size=None), loader(other, batch_size=None)
    families = []
    for _ in range(2):
        pairs = list(zip(first, second))
        families.append(({a[0] for a, _ in pairs}, {b[0] for _, b in pairs}))
    assert families[0] == families[1] and len(families[0][0] | families[0][1]) == 2


def test_datasets_that_cannot_be_watched_have_the_last_two_zygotes():
    datasets = [[10 * os.getpid() + n] * 4 for n in range(3)]
    pids = []
    for dataset in datasets:
        assert list(loader(dataset, batch_size=None, num_workers=1)) == dataset
        pids.append(trainer._zygotes[-1].pid)
    assert gone(pids[0]) and alive(pids[1]) and alive(pids[2])
    assert list(loader(datasets[1], batch_size=None, num_workers=1)) == datasets[1]
    assert trainer._zygotes[-1].pid == pids[1]
    datasets[1].append(0)
    assert list(loader(datasets[1], batch_size=None, num_workers=1)) == datasets[1]


def test_persistent_workers_serve_every_epoch():
    batches = loader(Where(), batch_size=None, persistent_workers=True)
    assert {worker for _, worker in batches} == {worker for _, worker in batches}


def test_files_and_processes_do_not_grow():
    dataset = Where(2)

    def counts():
        children = [pid for pid in os.listdir("/proc") if pid.isdigit() and _parent(pid) == os.getpid()]
        return len(os.listdir("/proc/self/fd")), len(children)

    family(dataset)
    before = counts()
    for _ in range(50):
        family(dataset)
    files, children = counts()
    assert files <= before[0] + 2 and children <= before[1]


def _parent(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_starting_costs_few_files_a_worker():
    before = len(os.listdir("/proc/self/fd"))
    batches = iter(loader(Where(64), batch_size=None, num_workers=8))
    during = len(os.listdir("/proc/self/fd"))
    # A sentinel and a queue each; one queue, and what a zygote costs.
    assert during - before <= 2 * 8 + 6
    del batches


# --- ends ---------------------------------------------------------------------------------------------------


def test_a_killed_worker_is_told_at_once_and_by_name(monkeypatch):
    # Torch asks after its workers every 5 s. Where that is never, only the queue itself can have told.
    monkeypatch.setattr(_MultiProcessingDataLoaderIter._try_get_data, "__defaults__", (600.0,))
    batches = iter(loader(Dies(), batch_size=1, num_workers=1))
    pid = batches._workers[0].pid
    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        for _ in range(10):
            next(batches)
    cause = caught.value.__cause__
    assert isinstance(cause, WorkerDied) and cause.exitcode == -signal.SIGKILL and cause.pid == pid
    assert "SIGKILL" in str(cause)


def test_a_killed_zygote_takes_no_worker_with_it():
    dataset = Where(40)
    batches = iter(loader(dataset, batch_size=None, prefetch_factor=1))
    zygote, _ = next(batches)
    os.kill(zygote, signal.SIGKILL)
    assert gone(zygote)
    assert len(list(batches)) == 39
    with pytest.warns(RuntimeWarning, match=rf"zygote \(process {zygote}\) was killed by SIGKILL"):
        again, _ = family(dataset)
    assert again != {zygote}


def test_a_worker_without_its_zygote_ends_in_a_way_that_is_not_known():
    context = ullage.context("zygote")
    process = context.Process(target=time.sleep, args=(3600,))
    process.start()
    zygote = trainer._zygotes[-1].pid
    os.kill(zygote, signal.SIGKILL)
    assert gone(zygote) and process.is_alive() and process.exitcode is None
    process.kill()
    process.join(600)
    assert process.exitcode == 255
    with pytest.warns(RuntimeWarning, match="SIGKILL"):
        # The root has told of it only once it has reaped it.
        while any(one.pid == zygote for one in trainer._zygotes):
            trainer._look_after()


TRAINER = """
import os, signal, sys
import torch, ullage
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 1 << 30
    def __getitem__(self, index): return torch.ones(100)
class Slow(Rows):
    def __init__(self): self.x = 1
    def __setstate__(self, state):
        os.kill(int(os.environ["TRAINER"]), signal.SIGKILL)
        sum(range(1 << 40))
if __name__ == "__main__":
    os.environ["TRAINER"] = str(os.getpid())
    dataset = Rows() if sys.argv[1] == "serving" else Slow()
    context = ullage.context("zygote")
    from ullage._zygote import trainer
    print(trainer._root.pid, flush=True)
    batches = iter(torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=2, multiprocessing_context=context))
    next(batches)
    print(*[worker.pid for worker in batches._workers], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["serving", "starting"])
def test_all_end_with_the_trainer(when, script):
    done = subprocess.run([sys.executable, script(TRAINER), when], capture_output=True, text=True, timeout=600)
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == (3 if when == "serving" else 1), done.stderr
    assert gone(*pids)


def exits(how):
    if how == "raises":
        raise ValueError(how)
    if how == "sleeps":
        time.sleep(3600)
    sys.exit(how)


def test_a_process_ends_as_multiprocessing_tells_it():
    context = ullage.context("zygote")
    for how, code in ((0, 0), (3, 3), ("raises", 1)):
        process = context.Process(target=exits, args=(how,))
        process.start()
        process.join(600)
        assert process.exitcode == code and not process.is_alive()
    for end, code in ((lambda one: one.terminate(), -15), (lambda one: one.kill(), -9)):
        process = context.Process(target=exits, args=("sleeps",), daemon=True)
        process.start()
        process.join(0.01)
        assert process.is_alive() and process.exitcode is None and alive(process.pid)
        assert multiprocessing.connection.wait([process.sentinel], 0) == []
        end(process)
        assert multiprocessing.connection.wait([process.sentinel], 600) == [process.sentinel]
        process.join(600)
        assert process.exitcode == code
        process.close()


def tells(numbers, event, parent):
    event.wait(600)
    current = multiprocessing.current_process()
    numbers.put((current.name, multiprocessing.parent_process().pid == parent, os.getcwd(), sys.argv))


def test_a_process_is_what_spawn_makes_of_it(tmp_path, monkeypatch):
    context = ullage.context("zygote")
    numbers, event = context.Queue(), context.Event()
    monkeypatch.chdir(tmp_path)
    process = context.Process(target=tells, name="Teller", args=(numbers, event), kwargs={"parent": os.getpid()})
    process.start()
    event.set()
    assert numbers.get(timeout=600) == ("Teller", True, str(tmp_path), sys.argv)
    process.join(600)
    assert process.exitcode == 0


def trains(answers):
    dataset = Rows(20)
    batches = list(loader(dataset, batch_size=None))
    answers.put([float(x.sum()) for x, _ in batches])


@pytest.mark.parametrize("method", ["spawn", "fork", "zygote"])
def test_the_trainer_may_itself_have_been_started(method):
    context = ullage.context(method)
    answers = context.Queue()
    process = context.Process(target=trains, args=(answers,))
    process.start()
    assert answers.get(timeout=600) == [float(x.sum()) for x, _ in Rows(20)]
    process.join(600)
    assert process.exitcode == 0


def test_a_fork_of_the_trainer_has_no_part_in_its_zygotes():
    dataset = Where()
    zygotes, _ = family(dataset)
    pid = os.fork()
    if pid == 0:
        os._exit(len(trainer._zygotes))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert family(dataset)[0] == zygotes


class Forks(Tensors):
    """Another process is forked while this is pickled, and lives longer."""

    def __getstate__(self):
        if getattr(self, "child", None) is None:
            self.child = os.fork()
            if self.child == 0:
                time.sleep(3600)
                os._exit(0)
        return {"tensors": self.tensors}


def test_a_fork_while_the_dataset_is_sent_does_not_hold_the_zygote_up():
    dataset = Forks(10)
    try:
        assert len(list(loader(dataset, batch_size=None))) == 10
        assert os.waitpid(dataset.child, os.WNOHANG) == (0, 0), "it was not waited for"
    finally:
        os.kill(dataset.child, signal.SIGKILL)
        os.waitpid(dataset.child, 0)


def test_a_trainer_with_threads_has_workers_as_ever():
    ended = threading.Event()
    threads = [threading.Thread(target=ended.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        assert len(family(Where())[0]) == 1
    finally:
        ended.set()


# --- what goes wrong ----------------------------------------------------------------------------------------


def test_a_dataset_that_cannot_be_pickled_raises_and_leaves_nothing():
    before = {one.pid for one in trainer._zygotes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
            iter(loader(Where(8, lambda: 1)))
    assert {one.pid for one in trainer._zygotes} <= before


def is_called(comm, named):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write(comm)
    named.set()
    time.sleep(3600)


class Unwilling(Where):
    """Does something where it is unpickled."""

    def __init__(self, what):
        super().__init__()
        self.what = what

    def __setstate__(self, state):
        self.__dict__.update(state)
        if multiprocessing.current_process().name != "zygote":
            return
        if self.what == "raises":
            raise ValueError("no such thing")
        if self.what == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.what == "exits":
            os._exit(7)
        if self.what == "thread":
            threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
        if self.what == "jemalloc":
            named = threading.Event()
            threading.Thread(target=is_called, args=("jemalloc_bg_thd", named), daemon=True).start()
            named.wait()
        if self.what == "cuda":
            torch.cuda.is_initialized = lambda: True


@pytest.mark.parametrize(
    "what, words",
    [
        ("raises", "ValueError: no such thing"),
        ("killed", "was killed by SIGKILL"),
        ("exits", "ended with exit status 7"),
    ],
)
def test_a_zygote_that_fails_to_start_is_an_error_that_says_why(what, words):
    with pytest.raises(Error, match=words):
        iter(loader(Unwilling(what)))
    assert len(family(Where())[0]) == 1, "another one starts"


@pytest.mark.parametrize("what, words", [("thread", r"2 threads run in it.*\("), ("cuda", "initialised CUDA")])
@pytest.mark.parametrize("otherwise", [None, pytest.param("spawn", marks=pytest.mark.thorough)])
def test_a_zygote_that_must_not_fork_says_why_and_the_programs_own_method_is_kept(what, words, otherwise, monkeypatch):
    monkeypatch.setattr(trainer, "_refused", False)
    context = ullage.context("zygote", otherwise)
    batches = DataLoader(Unwilling(what), batch_size=None, num_workers=1, multiprocessing_context=context)
    own = otherwise or multiprocessing.get_start_method()
    with pytest.warns(RuntimeWarning, match=words) as warned:
        for _ in range(2):
            workers = iter(batches)
            assert workers._workers[0]._ullage_method == own
            assert {parent for parent, _ in workers} == {os.getpid()}
    (said,) = [str(one.message) for one in warned if "zygote" in str(one.message)]
    assert f"started by {own} from now on" in said


def test_a_thread_that_an_allocator_replaces_after_a_fork_is_no_reason_to_refuse(recwarn):
    dataset = Unwilling("jemalloc")
    zygotes, _ = family(dataset)
    assert zygotes == {trainer._zygotes[-1].pid} and not trainer._refused
    with open(f"/proc/{zygotes.pop()}/status") as file:
        assert "Threads:\t2" in file.read()


FIVE = """
import os, sys
import torch, ullage
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
class Made(torch.utils.data.Dataset):
    def __init__(self, number): self.number = number
    def __setstate__(self, state):
        self.__dict__.update(state)
        with open(sys.argv[2], "a") as file:
            file.write(f"{os.getpid()} {self.number}\\n")
    def __len__(self): return 4
    def __getitem__(self, index): return torch.full((3,), 10.0 * self.number + index), sys.modules["__mp_main__"].Made is Made
if __name__ == "__main__":
    ullage.install(method="zygote")
    loaders = [torch.utils.data.DataLoader(Made(n), batch_size=2, num_workers=2) for n in range(5)]
    for _ in range(2):
        for number, batches in enumerate(zip(*loaders)):
            print([(x.tolist(), same.tolist()) for x, same in batches], flush=True)
"""


def test_five_loaders_import_the_main_module_once_and_unpickle_each_dataset_once(script, tmp_path):
    imports, unpickled = tmp_path / "imports", tmp_path / "unpickled"
    command = [sys.executable, script(FIVE), str(imports), str(unpickled)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    expected = [
        [([[10.0 * n + i] * 3 for i in (b, b + 1)], [True, True]) for n in range(5)] for _ in range(2) for b in (0, 2)
    ]
    assert [eval(line) for line in done.stdout.splitlines()] == expected, done.stderr
    assert len(imports.read_text().split()) == 2, "the program, and the root"
    pids, numbers = zip(*(line.split() for line in unpickled.read_text().splitlines()))
    assert sorted(numbers) == list("01234") and len(set(pids)) == 5


def test_a_killed_root_leaves_its_zygotes_alone_and_another_takes_its_place():
    one, other = Where(8, "one"), Where(8, "other")
    before, _ = family(one)
    root = trainer._root.pid
    os.kill(root, signal.SIGKILL)
    assert gone(root)
    with pytest.warns(RuntimeWarning, match=rf"root \(process {root}\) was killed by SIGKILL"):
        others, _ = family(other)
    assert family(one)[0] == before != others
    assert trainer._root.pid != root


def test_cuda_of_other_libraries_is_seen_by_the_device_that_they_opened(monkeypatch):
    assert not main._has_cuda()
    monkeypatch.setattr(os, "readlink", lambda path: "/dev/nvidia-uvm")
    assert main._has_cuda()


def _no_room(nbytes):
    raise _native.ArenaError("the cgroup /x uses 5 of the 6 bytes that it may (memory.max)")


def test_tensors_that_do_not_fit_are_an_error_before_they_are_copied(monkeypatch):
    monkeypatch.setattr(_native, "check_headroom", _no_room)
    with pytest.raises(Error, match="do not fit.*memory.max"):
        iter(loader(Rows(1000)))


def test_objects_that_do_not_fit_are_an_error_while_they_are_unpickled(monkeypatch):
    looks = []

    def fewer_and_fewer(nbytes):
        looks.append(nbytes)
        if len(looks) == 3:
            _no_room(nbytes)

    monkeypatch.setattr(_native, "check_headroom", fewer_and_fewer)
    text = pickle.dumps(list(range(1 << 22)), 5)
    read, write = os.pipe()

    def feed():
        try:
            with open(write, "wb") as file:
                file.write(text)
        except BrokenPipeError:
            pass

    feeder = threading.Thread(target=feed)
    feeder.start()
    stream = unpickling.Stream(read)
    with pytest.raises(MemoryError, match="memory.max"):
        pickle.Unpickler(stream).load()
    stream._file.close()
    feeder.join()
    assert len(looks) == 3 and min(looks) >= unpickling._MARGIN


def test_the_whole_of_a_dataset_that_does_not_fit_is_refused_by_name():
    most = int(next(line for line in open("/proc/meminfo") if line.startswith("MemTotal")).split()[1]) << 10
    with pytest.raises(_native.ArenaError, match="MemAvailable|memory.max"):
        _native.check_headroom(most)
    _native.check_headroom(1 << 20)


# --- parts --------------------------------------------------------------------------------------------------


def test_messages_arrive_whole_with_their_descriptors():
    ours, theirs = messages.socket.socketpair()
    fds = [os.memfd_create(str(n)) for n in range(300)]
    for n, fd in enumerate(fds):
        os.write(fd, b"%d" % n)
    text = os.urandom(3 << 20)
    sender = threading.Thread(target=lambda: (messages.send(ours, text, fds), messages.send(ours, b"", [])))
    sender.start()
    got, came = messages.receive(theirs)
    assert got == text and [os.pread(fd, 9, 0) for fd in came] == [b"%d" % n for n in range(300)]
    assert not any(os.get_inheritable(fd) for fd in came)
    assert messages.receive(theirs) == (b"", [])
    sender.join()
    ours.close()
    with pytest.raises(EOFError):
        messages.receive(theirs)
    theirs.close()
    for fd in fds + came:
        os.close(fd)


def loop(dataset_kind, dataset_holder, index_queue, done_event, collate_fn, init_fn, worker_id):
    """A loader worker's, with the arguments that it has since torch 2.14."""


loop.__module__ = "torch.utils.data._utils.worker"


def test_a_dataset_in_a_list_of_its_own_for_each_worker_is_known_again():
    dataset, event = Where(), threading.Event()
    first, second, other = (
        packing.Parts(loop, (0, [one], "queue", event, as_it_is, None, worker), {})
        for worker, one in enumerate((dataset, dataset, Where()))
    )
    assert first.iterator == second.iterator != other.iterator
    assert first.owner()() is dataset
    assert first.shared[1] == [dataset], "the worker takes it out of the list"


def test_parts_are_shared_unless_they_are_cheap_and_ones_own():
    context = ullage.context("zygote")
    big, queue_, lock = [1], context.Queue(), context.Lock()
    parts = packing.Parts(exits, (1, big, queue_, "x" * 5000, None), {"lock": lock, "name": "short"})
    assert parts.shared == {None: exits, 1: big, 3: "x" * 5000}
    assert set(parts.own) == {0, 2, 4, "lock", "name"}
    assert parts.iterator is None


def test_install_can_choose_the_zygote_but_for_fork_by_name():
    plain = DataLoader(Rows(8), num_workers=1)
    spawned = DataLoader(Rows(8), num_workers=1, multiprocessing_context="spawn")
    forked = DataLoader(Rows(8), num_workers=1, multiprocessing_context="fork")
    ullage.install(method="zygote")
    try:
        assert plain.multiprocessing_context is ullage.context("zygote")
        assert spawned.multiprocessing_context.get_start_method() == "zygote"
        assert spawned.multiprocessing_context._otherwise == "spawn"
        assert forked.multiprocessing_context is ullage.context("fork")
    finally:
        ullage.uninstall()


def test_a_method_that_is_asked_for_later_takes_the_place_of_the_one_before():
    plain = DataLoader(Rows(8), num_workers=1)
    ullage.install()
    try:
        before = plain.multiprocessing_context
        ullage.install(method="zygote")  # as a program under `ullage run --fix` does
        assert plain.multiprocessing_context is ullage.context("zygote")
        ullage.install()
        assert plain.multiprocessing_context is ullage.context("zygote")
    finally:
        ullage.uninstall()
    ullage.install()
    try:
        assert plain.multiprocessing_context is before
    finally:
        ullage.uninstall()


def test_the_context_can_be_pickled_and_switched_off(monkeypatch):
    context = ullage.context("zygote")
    assert pickle.loads(pickle.dumps(context)) is context and context.get_start_method() == "zygote"
    monkeypatch.setenv("ULLAGE_DISABLE", "1")
    assert ullage.context("zygote") is multiprocessing.get_context(multiprocessing.get_start_method())
    assert ullage.context("zygote", "spawn") is multiprocessing.get_context("spawn")


def test_what_stands_in_for_a_zygote_survives_pickling():
    context = ullage.context("zygote", "spawn")
    assert pickle.loads(pickle.dumps(context))._otherwise == copy.copy(context)._otherwise == "spawn"


PRELOADED = """
import os, torch, ullage
class Where(torch.utils.data.Dataset):
    def __len__(self): return 1
    def __getitem__(self, index):
        with open(f"/proc/{os.getppid()}/maps") as file:
            return "libtorch" in file.read()
if __name__ == "__main__":
    print(*torch.utils.data.DataLoader(Where(), batch_size=None, num_workers=1, multiprocessing_context=ullage.context("forkserver")))
"""


def test_the_fork_server_imports_torch_for_its_children(script):
    done = subprocess.run([sys.executable, script(PRELOADED)], capture_output=True, text=True, timeout=600)
    assert done.stdout.split() == ["True"], done.stderr


def test_a_process_that_gets_nothing_raises_empty():
    one = ullage.context("zygote").Queue()
    with pytest.raises(queue.Empty):
        one.get(timeout=0.01)
