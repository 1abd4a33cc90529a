"""Jobs in the shape of those that people run: their own datasets, collate functions, samplers, pipelines of processes.

    python clients.py METHOD NAME [NAME...]      prints a line for each: its name, a tab, a digest of what it computed

A client that raises has the exception as its result. METHOD is the start method of workers and processes.
"""

import collections
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import functools
import gc
import hashlib
import io
import itertools
import math
import multiprocessing
import os
import pickle
import queue
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import warnings

import numpy
import results
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)

METHOD = "fork"
CLIENTS = {}


def client(function):
    CLIENTS[function.__name__.replace("_", "-")] = function
    return function


class Sum:
    """Of everything that it is given, in order."""

    def __init__(self):
        self.sha = hashlib.sha1()
        self.count = 0

    def add(self, one):
        self.count += 1
        if isinstance(one, torch.Tensor):
            plain = one.detach().contiguous()
            self.sha.update(repr((tuple(one.shape), one.dtype)).encode())
            self.sha.update(plain.flatten().view(torch.uint8).numpy().tobytes() if plain.numel() else b"")
        elif isinstance(one, numpy.ndarray):
            self.sha.update(repr((one.shape, one.dtype.str)).encode() + one.tobytes())
        elif isinstance(one, dict):
            for key, value in one.items():
                self.add(key)
                self.add(value)
        elif isinstance(one, (list, tuple)):
            self.sha.update(type(one).__name__.encode())
            for part in one:
                self.add(part)
        elif dataclasses.is_dataclass(one) or hasattr(one, "__dict__"):
            self.add(type(one).__name__)
            self.add(vars(one))
        else:
            self.sha.update(repr(one).encode())
        return self

    def __str__(self):
        return f"{self.count} parts {self.sha.hexdigest()[:16]}"


def loader(dataset, **settings):
    settings.setdefault("num_workers", 2 if METHOD == "fork" else 1)  # one that is spawned imports torch again
    return DataLoader(dataset, multiprocessing_context=METHOD if settings["num_workers"] else None, **settings)


def everything(batches):
    total = Sum()
    for batch in batches:
        total.add(batch)
    return total


def chance(index):
    return torch.Generator().manual_seed(index)


class Made(Dataset):
    """Samples that a function makes of their index."""

    def __init__(self, make, length):
        self.make, self.length = make, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if not 0 <= index < self.length:
            raise IndexError(index)
        return self.make(index)


def image(index, size=24):
    return torch.randn(3, size, size, generator=chance(index))


def train(batches, width, steps=None):
    """A step for each batch; the weights at the end."""
    torch.manual_seed(0)
    net = torch.nn.Linear(width, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in itertools.islice(batches, steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x.flatten(1)), y).backward()
        optimizer.step()
    return Sum().add(net.weight).add(net.bias)


# --- collate functions of their own ---------------------------------------------------------------------------


def boxes_of(index):
    some = 1 + index % 5
    target = {"boxes": torch.rand(some, 4, generator=chance(index)), "labels": torch.arange(some), "id": index}
    return torch.rand(3, 20 + index % 3, 20, generator=chance(index)), target


def as_tuples(batch):
    return tuple(zip(*batch))


@client
def detection():
    return everything(loader(Made(boxes_of, 40), batch_size=4, collate_fn=as_tuples))


def boxes_as_arrays(index):
    """As PIL and LMDB give them: arrays over bytes that nobody may write."""
    pixels = numpy.frombuffer(bytes([index % 256]) * 20_000, dtype=numpy.uint8).reshape(100, 200)
    return {"image": pixels, "boxes": numpy.arange(4.0) + index}


def as_list(batch):
    return batch


@client
def detection_of_read_only_arrays():
    total = Sum()
    for batch in loader(Made(boxes_as_arrays, 20), batch_size=4, collate_fn=as_list):
        for sample in batch:
            sample["image"] += 1  # in place, as augmentations do
            total.add(sample)
    return total


def fits(index):
    return numpy.arange(20_000, dtype=">f4") + index


@client
def arrays_of_the_other_byte_order():
    return everything(torch.from_numpy(one) for one in loader(Made(fits, 8), batch_size=None, collate_fn=as_list))


def tokens_of(index):
    length = 3 + index * 7 % 11
    return {"input_ids": list(range(index, index + length)), "attention_mask": [1] * length, "label": index % 2}


def padded(batch):
    longest = max(len(one["input_ids"]) for one in batch)
    rows = {key: [one[key] + [0] * (longest - len(one[key])) for one in batch] for key in ("input_ids", "attention_mask")}
    return {**{key: torch.tensor(value) for key, value in rows.items()}, "labels": torch.tensor([b["label"] for b in batch])}


@client
def tokens():
    return everything(loader(Made(tokens_of, 60), batch_size=8, shuffle=True, generator=chance(1), collate_fn=padded))


class Graph:
    def __init__(self, x, edges):
        self.x, self.edges = x, edges


class Batch:
    """Many graphs as one, with the place of each."""

    def __init__(self, graphs):
        starts = [0, *itertools.accumulate(len(graph.x) for graph in graphs)]
        self.x = torch.cat([graph.x for graph in graphs])
        self.edges = torch.cat([graph.edges + start for graph, start in zip(graphs, starts)], 1)
        self.ptr = torch.tensor(starts)

    def pin_memory(self):
        return self


def graph_of(index):
    nodes = 2 + index % 6
    return Graph(torch.randn(nodes, 5, generator=chance(index)), torch.randint(nodes, (2, 9), generator=chance(index)))


@client
def graphs():
    return everything(loader(Made(graph_of, 50), batch_size=8, collate_fn=Batch))


def pixels_of(index):
    return (numpy.arange(3 * 30 * 30) * (index + 1) % 251).astype(numpy.uint8).reshape(3, 30, 30), index % 10


def fast_collate(batch):
    images = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for number, (one, _) in enumerate(batch):
        images[number] += torch.from_numpy(one)
    return images, torch.tensor([label for _, label in batch])


@client
def fast_images():
    batches = loader(Made(pixels_of, 40), batch_size=8, collate_fn=fast_collate, persistent_workers=True)
    total = Sum()
    for _ in range(3):
        for x, y in batches:
            total.add(x.float().sub_(127).div_(60)).add(y)
    return total


@client
def augmented_in_main():
    total = Sum()
    torch.manual_seed(2)
    for x in loader(Made(image, 24), batch_size=6):
        x.mul_(torch.rand(len(x), 1, 1, 1)).clamp_(-1, 1)
        x[:, :, :4] = x.flip(-1)[:, :, :4]
        total.add(torch.nn.functional.avg_pool2d(x, 2))
    return total


def volume_of(index):
    return [{"image": torch.rand(1, 6, 6, 6, generator=chance(index + n)), "meta": {"name": f"{index}-{n}"}} for n in range(3)]


def flat(batch):
    return default_collate([patch for patches in batch for patch in patches])


@client
def lists_of_patches():
    return everything(loader(Made(volume_of, 16), batch_size=2, collate_fn=flat))


class Table(Dataset):
    """Takes a whole batch of indices at once."""

    def __init__(self):
        self.x = torch.arange(4000.0).reshape(1000, 4)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, indices):
        return self.x[indices], torch.as_tensor(indices)


@client
def table():
    sampler = BatchSampler(RandomSampler(Table(), generator=chance(4)), 128, drop_last=False)
    return everything(loader(Table(), sampler=sampler, batch_size=None))


class Many(Table):
    def __getitems__(self, indices):
        return [(self.x[index], index) for index in indices]

    def __getitem__(self, index):
        raise AssertionError("one by one")


@client
def many_items_at_once():
    return everything(loader(Many(), batch_size=100))


def sequence_of(index):
    return torch.randn(1 + index % 9, 3, generator=chance(index)), 1 + index % 9


def by_length(batch):
    batch = sorted(batch, key=lambda one: -one[1])
    return torch.nn.utils.rnn.pad_sequence([x for x, _ in batch], batch_first=True), torch.tensor([n for _, n in batch])


@client
def sequences():
    total = Sum()
    for x, lengths in loader(Made(sequence_of, 50), batch_size=8, collate_fn=by_length):
        total.add(torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True).data)
    return total


Point = collections.namedtuple("Point", "x y")
Scene = collections.namedtuple("Scene", "points camera name")


def scene_of(index):
    return Scene([Point(torch.tensor(index), index * 0.5)] * 2, {"matrix": numpy.eye(3) * index}, f"scene {index}")


@client
def nested_named_tuples():
    return everything(loader(Made(scene_of, 20), batch_size=4))


@dataclasses.dataclass
class Clip:
    frames: torch.Tensor
    sound: numpy.ndarray
    about: dict


def clip_of(index):
    return Clip(torch.full((4, 3, 8, 8), index, dtype=torch.uint8), numpy.arange(30) * index, {"fps": 25})


@client
def dataclasses_in_lists():
    return everything(loader(Made(clip_of, 12), batch_size=3, collate_fn=as_list))


class OwnTensor(torch.Tensor):
    pass


def own_tensor_of(index):
    return image(index, 8).as_subclass(OwnTensor)


@client
def tensor_subclasses():
    total = Sum()
    for batch in loader(Made(own_tensor_of, 12), batch_size=3):
        total.add(type(batch).__name__).add(batch.as_subclass(torch.Tensor))
    return total


# --- iterable datasets ---------------------------------------------------------------------------------------------


class Split(IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        info = get_worker_info()
        for index in range(info.id if info else 0, self.length, info.num_workers if info else 1):
            yield index, image(index, 6)


@client
def iterable_split_between_workers():
    return everything(loader(Split(50), batch_size=4, num_workers=3))


class Shards(IterableDataset):
    """Tar files that each worker reads some of, shuffled in a buffer."""

    def __init__(self, folder):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))

    def __iter__(self):
        info, buffer, dice = get_worker_info(), [], random.Random(5)
        for path in self.paths[info.id :: info.num_workers]:
            with tarfile.open(path) as tar:
                for member in tar:
                    buffer.append((member.name, numpy.frombuffer(tar.extractfile(member).read(), dtype=numpy.uint8)))
                    if len(buffer) > 10:
                        yield buffer.pop(dice.randrange(len(buffer)))
        yield from buffer


@client
def shards():
    with tempfile.TemporaryDirectory() as folder:
        for number in range(4):
            with tarfile.open(f"{folder}/{number}.tar", "w") as tar:
                for sample in range(12):
                    data = bytes([number * 12 + sample]) * 5000
                    info = tarfile.TarInfo(f"{number}-{sample}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        return everything(loader(Shards(folder), batch_size=None))


class Endless(IterableDataset):
    def __iter__(self):
        for index in itertools.count():
            yield torch.full((50,), index)


@client
def endless_stopped_early():
    batches = iter(loader(Endless(), batch_size=4))
    return everything(itertools.islice(batches, 20))


# --- samplers, settings, other loaders beside -----------------------------------------------------------------------


def row_of(index):
    return image(index, 4), index % 2


@client
def training_loop():
    return train(loader(Made(row_of, 96), batch_size=8, shuffle=True, generator=chance(9)), 48)


@client
def weighted_sampling():
    sampler = WeightedRandomSampler([1.0, 5.0] * 20, 60, generator=chance(3))
    return everything(loader(Made(row_of, 40), batch_size=7, sampler=sampler, drop_last=True))


class Buckets:
    """A batch sampler: lists of indices of alike lengths."""

    def __iter__(self):
        for start in range(9):
            yield list(range(start, 50, 9))

    def __len__(self):
        return 9


@client
def buckets():
    return everything(loader(Made(sequence_of, 50), batch_sampler=Buckets(), collate_fn=by_length))


@client
def persistent_epochs():
    batches = loader(Made(row_of, 30), batch_size=4, persistent_workers=True, prefetch_factor=4)
    total = Sum()
    for _ in range(4):
        for batch in batches:
            total.add(batch)
    iterator = iter(batches)
    total.add(next(iterator))
    del iterator
    return total.add(list(batches))


@client
def pinning_without_a_gpu():
    return everything(loader(Made(row_of, 30), batch_size=4, pin_memory=True))


@client
def training_and_validation():
    parts = random_split(Made(row_of, 60), [40, 20], generator=chance(7))
    total = Sum()
    for _ in range(2):
        for batch in loader(parts[0], batch_size=8):
            total.add(batch)
        total.add(list(loader(parts[1], batch_size=8)))
    return total


@client
def loaders_in_step():
    two = [loader(Made(row_of, 40), batch_size=4), loader(Made(tokens_of, 40), batch_size=4, collate_fn=padded)]
    return everything(zip(*two))


@client
def joined_datasets():
    whole = ConcatDataset([TensorDataset(torch.arange(20)), TensorDataset(torch.arange(100, 130))])
    return everything(loader(Subset(whole, range(0, 50, 3)), batch_size=5))


@client
def every_batch_kept():
    kept = list(loader(Made(image, 60), batch_size=4))
    gc.collect()
    return everything(kept)


@client
def batches_changed_and_kept():
    kept = []
    for batch in loader(Made(image, 40), batch_size=4):
        kept.append(batch)
        batch += len(kept)
    return everything(kept)


def seeded(index):
    return torch.randint(1000, (3,)), random.random(), float(numpy.random.rand())


def init_worker(number):
    random.seed(number)
    numpy.random.seed(number)


@client
def random_numbers_of_workers():
    return everything(loader(Made(seeded, 20), batch_size=4, worker_init_fn=init_worker, generator=chance(8)))


def about_the_worker(index):
    info = get_worker_info()
    process = multiprocessing.current_process()
    numbered = process.name.rstrip("0123456789")
    return info.id, info.num_workers, numbered, process.daemon, torch.get_num_threads(), os.path.basename(os.getcwd())


@client
def what_a_worker_sees():
    settings = {"batch_size": None, "collate_fn": as_list, "num_workers": 2}
    unchosen = DataLoader(Made(about_the_worker, 10), **settings)
    return [sorted(set(batches)) for batches in (loader(Made(about_the_worker, 10), **settings), unchosen)]


@client
def no_workers():
    return everything(loader(Made(row_of, 20), batch_size=4, num_workers=0))


@client
def loader_that_is_pickled():
    batches = loader(Made(row_of, 20), batch_size=4)
    return everything(DataLoader(pickle.loads(pickle.dumps(batches.dataset)), batch_size=4)).add(len(batches))


# --- what fails ------------------------------------------------------------------------------------------------------


class Odd(Exception):
    def __init__(self, first, second):
        super().__init__(first)


def fails_at_three(index, how):
    if index == 3:
        if how == "odd":
            raise Odd(1, 2)
        if how == "key":
            raise KeyError("missing\nkey")
        if how == "stop":
            raise StopIteration
        if how == "exit":
            sys.exit(3)
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "warns":
            warnings.warn("the sample is odd", stacklevel=1)
    return torch.ones(3) * index


def told(how):
    # Where a worker is gone, torch makes temporary files to see why, and its own handler of SIGCHLD may interrupt that.
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        try:
            return told_of(how)
        finally:
            tempfile.tempdir = None
            gc.collect()  # files that the exception's frames hold, before their folder is gone


def told_of(how):
    got = Sum()
    batches = iter(loader(Made(functools.partial(fails_at_three, how=how), 12), batch_size=1, num_workers=1))
    try:
        for batch in batches:
            got.add(batch)
    except Exception as error:
        if how == "killed":
            # torch's handler of SIGCHLD raises in whatever runs when the signal comes: here, and not in the iterator's end.
            with contextlib.suppress(RuntimeError):
                batches._workers[0].join()
            return "told"  # at which batch and by which error is chance, with torch's own transport as well
        words = [line for line in str(error).splitlines() if not line.startswith("  ")]
        return f"{got} {type(error).__name__} {words}"
    return got


for odd in ("odd", "key", "stop", "killed", "warns"):
    CLIENTS[f"worker-that-fails-{odd}"] = functools.partial(told, odd)


def fails_to_start(number):
    raise ValueError(f"worker {number} does not start")


@client
def worker_that_does_not_start():
    return everything(loader(Made(row_of, 8), worker_init_fn=fails_to_start, num_workers=1))


def uneven(index):
    return torch.ones(index)


@client
def batches_that_cannot_be_stacked():
    return everything(loader(Made(uneven, 8), batch_size=4, num_workers=1))


class WithoutLength(Dataset):
    def __getitem__(self, index):
        return index


@client
def dataset_without_length():
    return everything(loader(WithoutLength(), batch_size=2))


@client
def dataset_that_cannot_be_pickled():
    return everything(loader(Made(lambda index: index, 6), batch_size=2))


@client
def loop_left_by_an_exception():
    try:
        for number, _ in enumerate(loader(Made(image, 60), batch_size=2)):
            if number == 5:
                raise KeyError(number)
    except KeyError as error:
        return repr(error)


# --- processes of their own ---------------------------------------------------------------------------------------------


def fill(out, start, taken):
    for index in range(start, start + 10):
        out.put((index, image(index, 8), {"name": str(index)}))
    out.put(None)
    taken.wait()  # torch's way needs the sender alive until its tensors have arrived


def drained(out, makers):
    got = {}
    while makers:
        one = out.get(timeout=600)
        if one is None:
            makers -= 1
        else:
            got[one[0]] = one
    return Sum().add([got[key] for key in sorted(got)])


def pipeline(context):
    out, taken = context.Queue(8), context.Event()
    makers = [context.Process(target=fill, args=(out, 10 * number, taken)) for number in range(2)]
    for one in makers:
        one.start()
    total = drained(out, 2)
    taken.set()
    for one in makers:
        one.join()
    return total.add([one.exitcode for one in makers])


@client
def pipeline_of_multiprocessing():
    return pipeline(multiprocessing.get_context(METHOD))


@client
def pipeline_of_torch():
    return pipeline(torch.multiprocessing.get_context(METHOD))


@client
def pool_of_tensors():
    with torch.multiprocessing.get_context(METHOD).Pool(2) as pool:
        found = Sum().add(pool.map(image, range(6)))
        # Its workers end in order: one that is terminated may leave the socket that its tensors' descriptors went through.
        pool.close()
        pool.join()
        return found


@client
def executor_of_arrays():
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(METHOD)) as pool:
        return Sum().add(list(pool.map(fits, range(4))))


def trainer(rank, shared, answers):
    for number, batch in enumerate(DataLoader(Made(row_of, 16), batch_size=4, num_workers=1, multiprocessing_context="fork")):
        shared[rank] += batch[0].sum() * number
    answers.put(rank)


@client
def trainers_with_shared_weights():
    context = torch.multiprocessing.get_context(METHOD)
    shared, answers = torch.zeros(2).share_memory_(), context.SimpleQueue()
    ranks = [context.Process(target=trainer, args=(rank, shared, answers)) for rank in range(2)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    return Sum().add(shared).add([one.exitcode for one in ranks])


def rank_of(rank, folder):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    x = torch.ones(3) * (rank + 1)
    torch.distributed.all_reduce(x)
    torch.save(x, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@client
def distributed():
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank_of, args=(folder,), nprocs=2)
        return Sum().add([torch.load(f"{folder}/{rank}.pt") for rank in range(2)])


def producer_in_a_thread(batches, out):
    for batch in batches:
        out.put(batch)
    out.put(None)


@client
def prefetched_by_a_thread():
    out, total = queue.Queue(2), Sum()
    thread = threading.Thread(target=producer_in_a_thread, args=(loader(Made(row_of, 40), batch_size=4), out))
    thread.start()
    while (batch := out.get()) is not None:
        total.add(batch)
    thread.join()
    return total


class Gated(Dataset):
    """The second sample waits until the trainer writes into a pipe: so that a thread waits for its batch meanwhile."""

    def __init__(self, gate):
        self.gate = gate

    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 1:
            os.read(self.gate, 1)
        return torch.full((1000,), index)


def forks_while_a_thread_waits(fork):
    gate, opened = os.pipe()
    batches, got = iter(loader(Gated(gate), batch_size=None, num_workers=1, prefetch_factor=1)), []
    got.append(next(batches))
    thread = threading.Thread(target=lambda: got.extend(batches))
    thread.start()
    # The thread waits in the kernel: nothing else tells that it is in the queue.
    task = f"/proc/self/task/{thread.native_id}/stat"
    with open(task) as file:
        while file.read().rpartition(")")[2].split()[0] != "S":
            os.sched_yield()
            file.seek(0)
    result = fork()
    os.write(opened, b"x")
    thread.join()
    os.close(gate), os.close(opened)
    return Sum().add(sorted(int(one[0]) for one in got)).add(result)


def forked_status():
    pid = os.fork()
    if pid == 0:
        os._exit(5)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def process_status():
    one = multiprocessing.get_context("fork").Process(target=abs, args=(1,))
    one.start()
    one.join()
    return one.exitcode


@client
def fork_while_a_thread_waits():
    return forks_while_a_thread_waits(forked_status)


@client
def process_while_a_thread_waits():
    return forks_while_a_thread_waits(process_status)


@client
def preexec_while_a_thread_waits():
    return forks_while_a_thread_waits(lambda: subprocess.run(["true"], preexec_fn=os.getpid).returncode)


@client
def loader_while_a_thread_waits():
    inner = functools.partial(DataLoader, Made(row_of, 8), batch_size=4, num_workers=1, multiprocessing_context="fork")
    return forks_while_a_thread_waits(lambda: str(everything(inner())))


def inner_sum(index):
    return torch.stack([one.sum() for one in DataLoader(torch.arange(6.0) * index, num_workers=0)])


@client
def loader_in_a_worker():
    return everything(loader(Made(inner_sum, 6), batch_size=2))


def forks_in_a_worker(index):
    one = torch.full((5000,), float(index))
    pid = os.fork()
    if pid == 0:
        one.fill_(-1)
        os._exit(0)
    os.waitpid(pid, 0)
    return one


@client
def forks_in_workers():
    return everything(loader(Made(forks_in_a_worker, 16), batch_size=4))


def shells_in_a_worker(index):
    return int(subprocess.check_output(["expr", str(index), "+", "1"]))


@client
def commands_in_workers():
    return everything(loader(Made(shells_in_a_worker, 8), batch_size=4))


# --- what looks at the interpreter ------------------------------------------------------------------------------------------


@client
def collected_at_every_object():
    before = gc.get_threshold()
    gc.set_threshold(20)
    try:
        return everything(loader(Made(row_of, 40), batch_size=4))
    finally:
        gc.set_threshold(*before)


@client
def traced_loop():
    seen = set()

    def trace(frame, event, argument):
        seen.add(frame.f_code.co_name)

    sys.settrace(trace)
    try:
        total = everything(loader(Made(row_of, 8), batch_size=4))
    finally:
        sys.settrace(None)
    return total.add("everything" in seen)


@client
def rng_of_the_trainer():
    torch.manual_seed(3)
    random.seed(3)
    numpy.random.seed(3)
    list(loader(Made(row_of, 8), batch_size=4))
    return Sum().add([torch.rand(2), random.random(), numpy.random.rand(2)])


def _after_feeders():
    """A loader does not wait for the threads of its queues, which close a descriptor each as they end."""
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join(60)


@client
def threads_and_descriptors_afterwards():
    list(loader(Made(row_of, 8), batch_size=4))
    _after_feeders()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(4):
        list(loader(Made(row_of, 8), batch_size=4))
    _after_feeders()
    return threading.active_count(), len(os.listdir("/proc/self/fd")) - before


@client
def checkpoint_of_batches():
    kept = list(loader(Made(row_of, 12), batch_size=4))
    out = io.BytesIO()
    torch.save(kept, out)
    return everything(torch.load(io.BytesIO(out.getvalue())))


@client
def batches_as_arrays():
    return everything(x.numpy() for x, _ in loader(Made(row_of, 16), batch_size=4))


@client
def batches_copied_and_shared():
    total = Sum()
    for x, _ in loader(Made(row_of, 16), batch_size=4):
        other = x.clone()
        x.share_memory_()
        total.add(x.is_shared()).add(torch.equal(x, other)).add(x.data_ptr() % 16)
        total.add(math.fsum(x.flatten().tolist()))
    return total


@client
def address_of_a_batch():
    total = Sum()
    for x, _ in loader(Made(row_of, 8), batch_size=4):
        first = ctypes.c_float.from_address(x.data_ptr()).value
        total.add(first == float(x.flatten()[0])).add(x.is_contiguous()).add(x.untyped_storage().nbytes() >= x.numel() * 4)
    return total


# Those that are run once more with spawn: what they start is imported anew.
STARTED = [
    "detection-of-read-only-arrays",
    "persistent-epochs",
    "shards",
    "graphs",
    "worker-that-fails-odd",
    "dataset-that-cannot-be-pickled",
    "pipeline-of-multiprocessing",
    "pipeline-of-torch",
    "pool-of-tensors",
    "trainers-with-shared-weights",
    "prefetched-by-a-thread",
]


def main():
    global METHOD
    METHOD, *names = sys.argv[1:]
    results.say_each(CLIENTS, names)


if __name__ == "__main__":
    main()
