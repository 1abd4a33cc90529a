#!/usr/bin/env python3
"""How soon many workers serve with a large dataset, and what they hold: `ullage.context("zygote")`, and "forkserver".

objects     32 workers over a list of dicts, strings and numbers of 2 GB: the time until each has served a batch, beside
            one unpickle and 32 forks of a process of that size; the proportional set size (PSS) of zygote and workers,
            beside the same tree with an empty dataset and one copy of the dataset.
tensor      The same over one tensor of 2 GB.
threads     Workers that use threads of torch's do not hang.
forkserver  4 workers with a tiny dataset: the first epoch, beside one import of torch; later epochs.

Time runs from `iter(loader)`: the trainer's pickling is in it, and what the zygote has not imported by then. The
trainer has its dataset as well: its own set size is printed, and is of neither tree. What another process needs for one
unpickle (`pickle.load` of the whole, after its imports, as a spawned worker does it), for one copy and for a bare fork
is measured in the same run.

    python benches/zygote.py [--only objects tensor threads forkserver] [--gigabytes 2] [--workers 32]
"""

import argparse
import gc
import json
import os
import pickle
import statistics
import subprocess
import sys
import time

from bounds import Checks

MORE = 1.0  # seconds beside one unpickle and the forks
COPY = 1.05
IMPORT_MORE = 0.5  # seconds beside one import of torch
LATER = 0.2  # seconds for a later epoch
RECORD = 590  # bytes of a record in memory, about
MIB = 1 << 20
ALL = -1  # the item that reads all of the tensor


class Records:
    """What an annotation file becomes: a list of dicts. The item says which process made it."""

    def __init__(self, nbytes):
        self.records = [record(number) for number in range(nbytes // RECORD)]

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        if index == ALL:
            return os.getpid(), None
        found = self.records[index * 7919 % len(self.records)] if self.records else record(0)
        return os.getpid(), found["id"], sum(found["box"])


def record(number):
    return {
        "id": number,
        "file": f"images/{number:09d}.jpg",
        "label": f"class-{number}",
        "box": [number + 0.5] * 1 + [number * 1.5, number * 2.5, number * 3.5],
    }


class Tensor:
    def __init__(self, nbytes):
        import torch

        self.x = torch.full((nbytes // 4,), 1.0)

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        if index == ALL:
            return os.getpid(), float(self.x.sum())
        return os.getpid(), float(self.x[index % len(self.x)]) if len(self.x) else 1.0


class Multiplies:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        import torch

        torch.set_num_threads(4)
        x = torch.ones(500, 500)
        return float((x @ x)[0, 0]), len(os.listdir("/proc/self/task"))


class Little:
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return index


KINDS = {"objects": Records, "tensor": Tensor}


def as_it_is(item):
    return item


def pss(*pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
    return total


# --- jobs, each in a process of its own ----------------------------------------------------------------------


def served(kind, nbytes, workers):
    """Starts the loader and waits until each worker has served."""
    import torch
    from torch.utils.data import DataLoader

    import ullage

    torch.set_num_threads(1)
    context = ullage.context("zygote")  # imports torch while the dataset is made
    dataset = KINDS[kind](nbytes)
    time.sleep(3)
    loader = DataLoader(
        dataset,
        batch_size=None,
        sampler=[*range(workers), *[ALL] * workers, *range(workers)],
        collate_fn=as_it_is,
        num_workers=workers,
        prefetch_factor=1,
        multiprocessing_context=context,
    )
    start = time.monotonic()
    batches = iter(loader)
    started = time.monotonic() - start
    pids = {next(batches)[0] for _ in range(workers)}
    spent = time.monotonic() - start
    if pids != {worker.pid for worker in batches._workers}:
        raise SystemExit("not every worker has served")
    from ullage._zygote import trainer

    (zygote,) = trainer._zygotes
    for _ in range(workers):
        next(batches)
    figures = {"served_s": spent, "started_s": started, "tree": pss(zygote.pid, *pids), "trainer": pss(os.getpid())}
    print(json.dumps({**figures, **zygote.facts}), flush=True)
    for worker in batches._workers:
        worker.kill()
    os._exit(0)


def alone(kind, nbytes):
    """What one process needs that unpickles the dataset: time, memory, and a fork afterwards."""
    dataset = KINDS[kind](nbytes)
    fd = os.memfd_create("pickle")
    with open(fd, "wb", closefd=False) as file:
        pickle.dump(dataset, file, 5)
    del dataset
    os.lseek(fd, 0, os.SEEK_SET)
    words = [sys.executable, __file__, "--job", "unpickle", str(fd)]
    done = subprocess.run(words, pass_fds=[fd], capture_output=True, text=True, check=True)
    print(done.stdout, flush=True)


def unpickle(fd):
    import torch

    torch.set_num_threads(1)
    before = pss(os.getpid())
    start = time.monotonic()
    with open(fd, "rb", closefd=False) as file:
        dataset = pickle.load(file)
    spent = time.monotonic() - start
    copy = pss(os.getpid()) - before
    forks = []
    for _ in range(7):
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        forks.append(time.monotonic() - start)
        os.waitpid(pid, 0)
    del dataset
    os.lseek(fd, 0, os.SEEK_SET)
    gc.disable()
    start = time.monotonic()
    with open(fd, "rb", closefd=False) as file:
        pickle.load(file)
    without = time.monotonic() - start
    print(json.dumps({"unpickle_s": spent, "without_s": without, "copy": copy, "fork_s": statistics.median(forks)}))


def threads():
    import torch
    from torch.utils.data import DataLoader

    import ullage

    context = ullage.context("zygote")
    x = torch.ones(500, 500)
    x @ x  # threads in the trainer
    start = time.monotonic()
    loader = DataLoader(Multiplies(), batch_size=None, num_workers=4, multiprocessing_context=context, timeout=60)
    got = list(loader)
    right = sum(value == 500.0 for value, _ in got)
    print(json.dumps({"right": right, "threads": min(count for _, count in got), "spent": time.monotonic() - start}))


def epochs(count):
    import torch
    from torch.utils.data import DataLoader

    import ullage

    torch.set_num_threads(1)
    loader = DataLoader(Little(), batch_size=4, num_workers=4, multiprocessing_context=ullage.context("forkserver"))
    spent = []
    for _ in range(count):
        start = time.monotonic()
        got = torch.cat(list(loader)).tolist()
        spent.append(time.monotonic() - start)
        if got != list(range(16)):
            raise SystemExit("wrong batches")
    print(json.dumps(spent))


def imports():
    start = time.monotonic()
    import torch  # noqa: F401

    print(json.dumps(time.monotonic() - start))


def run(*words, timeout=900):
    """A job of this program in a process of its own; what it printed last."""
    command = [sys.executable, __file__, "--job", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise SystemExit(f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr[-3000:]}")
    return json.loads(lines[-1])


# --- what is shown -------------------------------------------------------------------------------------------


def show_served(checks, kind, nbytes, workers):
    name = f"{kind}, {nbytes / 1e9:.3g} GB, {workers} workers"
    one = run("alone", kind, nbytes)
    empty = run("served", kind, 0, workers)
    full = run("served", kind, nbytes, workers)
    print(
        f"{name}: a process that unpickles it: {one['unpickle_s']:.2f} s ({one['without_s']:.2f} s without the garbage "
        f"collector), {one['copy'] / MIB:.0f} MiB; a bare fork of it: {1e3 * one['fork_s']:.1f} ms"
    )
    print(
        f"{name}: the zygote took it over in {full['took_over_s']:.2f} s and froze it in {full['froze_s']:.2f} s "
        f"({full['frozen']}); iter(loader) took {full['started_s']:.2f} s; with an empty dataset all served after "
        f"{empty['served_s']:.2f} s"
    )
    bound = one["unpickle_s"] + workers * one["fork_s"] + MORE
    checks.at_most(f"{name}: until all served", full["served_s"], bound, " s")
    bound = (empty["tree"] + COPY * one["copy"]) / MIB
    print(
        f"{name}: PSS of the trainer {full['trainer'] / MIB:.0f} MiB, with an empty dataset "
        f"{empty['trainer'] / MIB:.0f} MiB"
    )
    print(f"{name}: PSS of zygote and workers with an empty dataset {empty['tree'] / MIB:.0f} MiB")
    checks.at_most(f"{name}: PSS of zygote and workers", full["tree"] / MIB, bound, " MiB")


def show_threads(checks):
    got = run("threads", timeout=120)
    print(f"threads: 8 items by 4 workers, each with {got['threads']} threads or more, after {got['spent']:.2f} s")
    checks.at_most("threads: wrong items", 8 - got["right"], 0)
    checks.at_most("threads: workers that used none", int(got["threads"] < 4), 0)


def show_forkserver(checks):
    one = statistics.median(run("imports") for _ in range(3))
    first, *later = run("epochs", 6)
    print(f"forkserver: one import of torch takes {one:.2f} s")
    checks.at_most("forkserver, 4 workers: first epoch", first, one + IMPORT_MORE, " s")
    checks.at_most("forkserver, 4 workers: median of the later epochs", statistics.median(later), LATER, " s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["objects", "tensor", "threads", "forkserver"]
    parser.add_argument("--only", nargs="*", choices=parts, default=parts)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--job", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        jobs = {"served": served, "alone": alone, "unpickle": unpickle, "threads": threads, "epochs": epochs}
        name, *words = args.job
        {**jobs, "imports": imports}[name](*(int(word) if word.isdigit() else word for word in words))
        return 0
    checks = Checks()
    for kind in KINDS:
        if kind in args.only:
            show_served(checks, kind, int(args.gigabytes * 1e9), args.workers)
    if "threads" in args.only:
        show_threads(checks)
    if "forkserver" in args.only:
        show_forkserver(checks)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
