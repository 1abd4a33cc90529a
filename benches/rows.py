#!/usr/bin/env python3
"""A tensor's rows in random order, made into batches by one worker, beside the same loader without workers.

The bound of a batch's time with ullage: that without workers, and 60 us, 3 us for each of its tensors, 100 us for each
of its MiB. Every round is a process of its own in which both run, one after the other in an order of chance; printed:
the medians of all rounds. The trainer reads a word of each page of a batch.

    python benches/rows.py [--rounds 10] [--seconds 2] [--only NAME ...] [--quick]
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

import ullage

MIB = 1 << 20
# Name: items of a batch, words of an item, with a label.
SHAPES = {
    "64x1024": (64, 1024, False),
    "256x4096": (256, 4096, False),
    "64x1024 and 64 labels": (64, 1024, True),
}
A_BATCH, A_TENSOR, A_MIB = 60, 3, 100


class Rows(Dataset):
    def __init__(self, rows, words):
        self.x = torch.randn(rows, words)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index]


class Labelled(Rows):
    def __init__(self, rows, words):
        super().__init__(rows, words)
        self.y = torch.arange(rows)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def read(batch):
    tensors = [batch] if torch.is_tensor(batch) else batch
    return sum(float(tensor.view(-1)[::1024].sum()) for tensor in tensors)


def wall(dataset, batch_size, workers, batches):
    """Seconds a batch, after as many batches to warm up as a tenth."""
    warm = max(20, batches // 10)
    # With replacement, so that one epoch is as long as is wanted.
    sampler = RandomSampler(dataset, replacement=True, num_samples=batch_size * (warm + batches))
    context = ullage.context("fork") if workers else None
    loader = iter(
        DataLoader(
            dataset, batch_size=batch_size, sampler=sampler, num_workers=workers, multiprocessing_context=context
        )
    )
    for _ in range(warm):
        read(next(loader))
    start = time.monotonic()
    for _ in range(batches):
        batch = next(loader)
        read(batch)
        del batch
    return (time.monotonic() - start) / batches


def job(name, mib, seconds, seed):
    torch.set_num_threads(1)
    batch_size, words, labelled = SHAPES[name]
    dataset = (Labelled if labelled else Rows)(mib * MIB // (4 * words), words)
    # How many batches the time is for.
    batches = max(20, int(seconds / wall(dataset, batch_size, 0, 50)))
    ways = [0, 1]
    random.Random(seed).shuffle(ways)
    print(json.dumps({workers: wall(dataset, batch_size, workers, batches) for workers in ways}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", nargs="*", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--quick", action="store_true", help="a much smaller size")
    parser.add_argument("--job", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        name, mib, seconds, seed = args.job
        job(name, int(mib), float(seconds), int(seed))
        return 0
    mib, rounds, seconds = (16, 2, 0.3) if args.quick else (256, args.rounds, args.seconds)

    figures = {name: {"0": [], "1": []} for name in args.only}
    for seed in range(rounds):
        for name, ways in figures.items():
            command = [sys.executable, __file__, "--job", name, str(mib), str(seconds), str(seed)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode != 0:
                raise SystemExit(f"{name}: {done.stderr[-3000:]}")
            for workers, spent in json.loads(done.stdout).items():
                ways[workers].append(1e6 * spent)

    met = 0
    for name, ways in figures.items():
        batch_size, words, labelled = SHAPES[name]
        size = batch_size * (4 * words + 8 * labelled) / MIB
        more = A_BATCH + A_TENSOR * (1 + labelled) + A_MIB * size
        alone, ours = statistics.median(ways["0"]), statistics.median(ways["1"])
        fine = ours <= alone + more
        met += fine
        print(
            f"{name:22} {mib} MiB of rows, {rounds} rounds: {ours:8.1f} us, without workers {alone:8.1f} us "
            f"(bound {alone + more:8.1f} us, {more:.1f} us more) {'met' if fine else 'MISSED'}",
            flush=True,
        )
    print(f"{met} figures met their bound, {len(figures) - met} did not")
    return 0 if met == len(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
