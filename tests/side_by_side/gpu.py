"""What jobs do that train on a GPU: loaders that pin their batches, forks beside the thread that pins, tensors that
travel by CUDA IPC, graphs of kernels, memory of the GPU that runs out.

    python gpu.py METHOD NAME[ NAME...]      prints a line for each job: its name, a tab, what it computed
"""

import ctypes
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import results
import torch
from torch.utils.data import DataLoader, Dataset

METHOD = "fork"
# The thread that pins waits in nearly every one of them.
FORKS = 100


class Rows(Dataset):
    """Rows of a fixed random table; a pause before each, so that the loader is waited for."""

    def __init__(self, length, width=64, pause=0.0):
        self.length, self.width, self.pause = length, width, pause

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.pause:
            time.sleep(self.pause)
        random = torch.Generator().manual_seed(index)
        return {"x": torch.rand(self.width, generator=random), "y": index % 7}


class Ragged(Dataset):
    """One tensor an item, each of another length."""

    def __len__(self):
        return 400

    def __getitem__(self, index):
        return torch.arange(1 + 37 * index % 2003, dtype=torch.int64)


class OnTheDevice(Dataset):
    """What uses CUDA in a worker."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.full((1000,), index, device="cuda")


def loader(dataset, **more):
    options = {"batch_size": 8, "num_workers": 3, "pin_memory": True, "multiprocessing_context": METHOD, **more}
    return DataLoader(dataset, **options)


def digest(tensors):
    total = hashlib.sha1()
    for one in tensors:
        total.update(str((one.dtype, tuple(one.shape))).encode() + one.detach().cpu().numpy().tobytes())
    return total.hexdigest()[:16]


def trained(batches, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch in batches:
        x, y = batch["x"].to("cuda", non_blocking=True), batch["y"].to("cuda", non_blocking=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def small_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 7)).cuda()


def training():
    return digest(trained(loader(Rows(800)), small_model()).parameters())


def epochs():
    model, batches = small_model(), loader(Rows(240), persistent_workers=True)
    for _ in range(3):
        trained(batches, model)
    return digest(model.parameters())


def pinned_batches():
    found = []
    for batch in loader(Rows(200)):
        found.append(batch["x"].is_pinned() and batch["y"].is_pinned() and batch["x"].is_contiguous())
    return len(found), all(found)


def ragged():
    """Batches of many sizes, of which every tenth is kept."""
    kept, total = [], 0
    for number, batch in enumerate(loader(Ragged(), collate_fn=list)):
        on_device = [one.to("cuda", non_blocking=True) for one in batch]
        total += int(sum(one.sum() for one in on_device))
        if number % 10 == 0:
            kept.append(batch)
    return total, digest(one for batch in kept for one in batch)


class Beside:
    """A loader that a thread of its own reads, slowly, while the main thread does something else."""

    def __enter__(self):
        self.sums, self.over = [], threading.Event()
        self.started = threading.Event()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        self.started.wait()
        return self

    def read(self):
        try:
            for batch in loader(Rows(480, pause=0.02)):
                self.sums.append(float(batch["x"].cuda().double().sum().cpu()))
                self.started.set()
        finally:
            self.started.set()

    def __exit__(self, *error):
        self.thread.join()


def forks():
    """Bare forks, which compute a little."""
    ended = []
    with Beside() as beside:
        for _ in range(FORKS):
            pid = os.fork()
            if not pid:
                signal.alarm(60)
                os._exit(sum(range(10)) % 40)
            ended.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return set(ended), len(ended), beside.sums


def preexec():
    ended = []
    with Beside() as beside:
        for _ in range(FORKS):
            one = subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], preexec_fn=os.getpid, timeout=60)
            ended.append(one.returncode)
    return set(ended), len(ended), beside.sums


def _sum_of(rows, queue):
    queue.put(float(sum(one["x"].sum() for one in rows)))


def processes():
    """multiprocessing's own children, forked beside the thread that pins."""
    context = torch.multiprocessing.get_context("fork")
    found = []
    with Beside() as beside:
        for _ in range(10):
            queue = context.SimpleQueue()
            child = context.Process(target=_sum_of, args=([Rows(8)[n] for n in range(8)], queue))
            child.start()
            found.append(queue.get())
            child.join(60)
            found.append(child.exitcode)
    return found, beside.sums


def validation_loader():
    """Another loader, with workers of its own, beside the one that is waited for."""
    with Beside() as beside:
        found = [float(batch["x"].double().sum()) for _ in range(3) for batch in loader(Rows(64))]
    return found, beside.sums


def by_cuda_ipc():
    context = torch.multiprocessing.get_context("spawn")
    given, back = context.SimpleQueue(), context.SimpleQueue()
    child = context.Process(target=_answers, args=(given, back))
    child.start()
    found = []
    for number in range(20):
        given.put(torch.full((number + 1, 100), float(number), device="cuda"))
        found.append(back.get())
    given.put(None)
    child.join(60)
    return found, child.exitcode


def _answers(given, back):
    while (one := given.get()) is not None:
        back.put(float((one * 2).sum().cpu()))
        del one


def cuda_in_workers():
    """Works with spawn and forkserver; a forked worker cannot use CUDA, and says so."""
    batches = loader(OnTheDevice(), batch_size=4, pin_memory=False, num_workers=2)
    return digest(batch.clone() for batch in batches)


def graph_of_kernels():
    """Captured while a loader runs, and replayed for each batch."""
    model, x = small_model(), torch.zeros(8, 64, device="cuda")
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            model(x)
        torch.cuda.current_stream().wait_stream(stream)
        batches = iter(loader(Rows(160)))
        first = next(batches)
        graph = torch.cuda.CUDAGraph()
        # The thread that pins calls CUDA meanwhile.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            y = model(x)
        total = []
        for batch in [first, *batches]:
            x.copy_(batch["x"], non_blocking=True)
            graph.replay()
            total.append(y.clone())
    return digest(total)


def gpu_runs_out():
    torch.cuda.set_per_process_memory_fraction(0.01)
    blocks = []
    try:
        for _ in range(600):
            blocks.append(torch.empty(1 << 28, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        return type(error).__name__, len(blocks), "out of memory" in str(error)
    finally:
        blocks.clear()
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    return "nothing"


class TooLong(Exception):
    pass


def _too_long(*_):
    raise TooLong


def timeouts():
    """A time-out by signal, that comes while a batch is waited for, or pinned, or copied."""
    signal.signal(signal.SIGALRM, _too_long)
    caught = 0
    for _ in range(20 if METHOD == "fork" else 5):
        batches = iter(loader(Rows(80, pause=0.02)))
        try:
            next(batches)["x"].cuda()
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            while True:
                next(batches)["x"].cuda()
        except TooLong:
            caught += 1
        except StopIteration:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        del batches
    return caught


def pinned_by_hand():
    """Memory that the program pins itself, at its address."""
    block = torch.arange(1 << 20, dtype=torch.float32).pin_memory()
    read = ctypes.c_float.from_address(block.data_ptr() + 4 * 77).value
    registered = torch.arange(1 << 20, dtype=torch.float32)
    failed = torch.cuda.cudart().cudaHostRegister(registered.data_ptr(), registered.nbytes, 0)
    pinned = registered.is_pinned()
    torch.cuda.cudart().cudaHostUnregister(registered.data_ptr())
    return read, int(failed), pinned, digest([block.cuda() + registered.cuda()])


JOBS = {
    "gpu-training": training,
    "gpu-epochs": epochs,
    "gpu-pinned-batches": pinned_batches,
    "gpu-ragged": ragged,
    "gpu-forks": forks,
    "gpu-preexec": preexec,
    "gpu-processes": processes,
    "gpu-validation-loader": validation_loader,
    "gpu-by-ipc": by_cuda_ipc,
    "gpu-in-workers": cuda_in_workers,
    "gpu-graph-of-kernels": graph_of_kernels,
    "gpu-runs-out": gpu_runs_out,
    "gpu-timeouts": timeouts,
    "gpu-pinned-by-hand": pinned_by_hand,
}


def main():
    global METHOD
    METHOD, *names = sys.argv[1:]
    results.say_each(JOBS, names)


if __name__ == "__main__":
    main()
