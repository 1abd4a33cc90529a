#!/usr/bin/env python3
"""What a batch costs on its way from a loader's workers to the trainer: ullage beside torch's two strategies.

Each row is one workload with so many workers. In every round the three ways run in an order of their own, each in
a new process; printed: the median time and CPU time of all processes a batch, and the median over the rounds of
torch's figure divided by ullage's in the same round. The trainer reads every batch: tensors of up to 64 KiB whole, of
larger ones a word of every page.

    python benches/transport.py [--rounds 10] [--workers 1,4] [--only NAME ...] [--seconds 2]
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

WAYS = ("ullage", "file_descriptor", "file_system")
# Name: floors of torch's time divided by ullage's, (file_descriptor, file_system), with one worker.
FLOORS = {
    "64x3x224x224": (9, 9),
    "64x1024": (10, 8),
    "dict of 30, 64x64": (18, 8),
    "64x16": (10, 8),
    "8 x 1 MiB": (10, 10),
    "64 tensors of 1 KiB": (50, 25),
}
CPU_FLOORS = (10, 8)


def job(way, name, workers, seconds):
    """Runs in a process of its own: prints the time and the CPU time a batch."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(1)

    class Prebuilt(Dataset):
        """One constant sample; batches are made of fresh tensors by torch's collate."""

        def __init__(self, sample):
            self.sample = sample

        def __len__(self):
            return 1 << 40

        def __getitem__(self, index):
            return self.sample

    class Made(Dataset):
        """A batch of many small tensors, made anew each time."""

        def __init__(self, tensors):
            self.tensors = tensors

        def __len__(self):
            return 1 << 40

        def __getitem__(self, index):
            return [tensor.clone() for tensor in self.tensors]

    batch_size = 64
    if name == "64x3x224x224":
        dataset = Prebuilt(torch.rand(3, 224, 224))
    elif name == "64x1024":
        dataset = Prebuilt(torch.rand(1024))
    elif name == "64x16":
        dataset = Prebuilt(torch.rand(16))
    elif name == "dict of 30, 64x64":
        dataset = Prebuilt({f"field{n}": torch.rand(64) for n in range(30)})
    elif name == "8 x 1 MiB":
        dataset = Prebuilt([torch.rand(4096) for _ in range(8)])
    elif name == "64 tensors of 1 KiB":
        dataset, batch_size = Made([torch.rand(256) for _ in range(64)]), None
    else:
        raise SystemExit(f"no workload {name!r}")

    context = None
    if way == "ullage":
        import ullage

        context = ullage.context("fork")
    else:
        torch.multiprocessing.set_sharing_strategy(way)

    class Endless(torch.utils.data.Sampler):
        def __iter__(self):
            while True:
                yield 0

    loader = DataLoader(
        dataset, batch_size=batch_size, sampler=Endless(), num_workers=workers, multiprocessing_context=context
    )

    def read(batch):
        tensors = list(batch.values()) if isinstance(batch, dict) else [batch] if torch.is_tensor(batch) else batch
        if tensors[0].nbytes <= 64 << 10:
            # Every byte; one at a time, torch's calls would cost more than the transport.
            return float(torch.cat(tensors).sum())
        return sum(float(tensor.view(-1)[::1024].sum()) for tensor in tensors)

    batches = iter(loader)
    pids = [os.getpid()] + [worker.pid for worker in batches._workers]

    def cpu():
        total = 0
        for pid in pids:
            for task in os.listdir(f"/proc/{pid}/task"):
                try:
                    with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                        total += int(file.read().split()[0])
                except FileNotFoundError:
                    pass
        return total / 1e9

    warm = time.monotonic() + min(1.0, seconds / 2)
    count = 0
    while time.monotonic() < warm or count < 20:
        read(next(batches))
        count += 1
    used, start, count = cpu(), time.monotonic(), 0
    while time.monotonic() < start + seconds or count < 20:
        read(next(batches))
        count += 1
    wall = (time.monotonic() - start) / count
    print(json.dumps({"wall": wall, "cpu": (cpu() - used) / count, "batches": count}), flush=True)
    # The workers of an endless sampler are ended, not waited for.
    for worker in batches._workers:
        worker.kill()
    os._exit(0)


def run(way, name, workers, seconds):
    command = [sys.executable, __file__, "--job", way, "--only", name, "--workers", str(workers)]
    command += ["--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if not done.stdout.strip():
        raise SystemExit(f"{way}, {name}, {workers} workers: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--workers", default="1,4")
    parser.add_argument("--only", nargs="*", default=list(FLOORS))
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--job", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        job(args.job, args.only[0], int(args.workers), args.seconds)

    met = missed = 0
    order = list(WAYS)
    chance = random.Random(1)
    for workers in [int(word) for word in args.workers.split(",")]:
        for name in args.only:
            figures = {way: [] for way in WAYS}
            for _ in range(args.rounds):
                chance.shuffle(order)
                for way in order:
                    figures[way].append(run(way, name, workers, args.seconds))

            def median(way, what, figures=figures):
                return statistics.median(figure[what] for figure in figures[way])

            def ratio(way, what, figures=figures):
                return statistics.median(t[what] / u[what] for t, u in zip(figures[way], figures["ullage"]))

            line = f"{name:22} {workers} workers  ullage {1e6 * median('ullage', 'wall'):9.1f} us"
            for index, way in enumerate(WAYS[1:]):
                floor = FLOORS[name][index] * (1 if workers == 1 else 0.5)
                cpu_floor = CPU_FLOORS[index]
                wall, cpu = ratio(way, "wall"), ratio(way, "cpu")
                fine = (wall >= floor) + (cpu >= cpu_floor)
                met, missed = met + fine, missed + 2 - fine
                marks = ["" if wall >= floor else " MISSED", "" if cpu >= cpu_floor else " MISSED"]
                line += (
                    f"   {way}: {wall:5.1f}x (floor {floor:g}{marks[0]}), CPU {cpu:5.1f}x (floor {cpu_floor}{marks[1]})"
                )
            print(line, flush=True)
    print(f"{met} figures met their floor, {missed} did not")
    return 0 if missed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
