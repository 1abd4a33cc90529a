#!/usr/bin/env python3
"""ullage beside SPDL's shared-memory arena: a batch of 8 tensors of 1 MiB from one process to the trainer.

SPDL (https://github.com/facebookresearch/spdl, Python 3.10 or newer) is used as its documentation says:
`iterate_in_subprocess` with a `SharedMemorySegmentPool`, whose tensors arrive without a copy. Its number of segments
and the size of its buffer are those that were fastest in a few runs before the rounds.

stacked   Both producers stack 64 constant samples of 8 rows into fresh tensors (torch's default_collate).
constant  Both producers send the same 8 tensors again and again.

In every round both run in an order of chance, each in a new process. The trainer reads a word of each page. Printed:
the median time a batch, and the median over the rounds of SPDL's time divided by ullage's in the same round.

    pip install --target DIRECTORY spdl-core
    python benches/spdl.py --spdl DIRECTORY [--rounds 10] [--seconds 2] [--only stacked constant] [--quick]
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

# This file has the name of the package.
sys.path[:] = [
    path for path in sys.path if os.path.realpath(path or ".") != os.path.dirname(os.path.realpath(__file__))
]

import torch  # noqa: E402
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate  # noqa: E402

MIB = 1 << 20
TENSORS = 8
BATCH = 64
FLOOR = 1.2
# Segments of the pool, and items of the queue; the first is SPDL's own choice of a buffer.
SEGMENTS = [(5, 3), (2, 1), (3, 2), (8, 6), (16, 14)]


class Sample(Dataset):
    """A row of each tensor; the fetcher stacks 64 of them."""

    def __init__(self):
        self.sample = [torch.rand(MIB // 4 // BATCH) for _ in range(TENSORS)]

    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        return self.sample


class Constant(Dataset):
    """A whole batch."""

    def __init__(self):
        self.batch = [torch.rand(MIB // 4) for _ in range(TENSORS)]

    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        return self.batch


class Endless(Sampler):
    def __iter__(self):
        while True:
            yield 0


class Stacked:
    """What SPDL's process iterates over: the same work as that of torch's fetcher."""

    def __init__(self):
        torch.set_num_threads(1)
        self.dataset = Sample()

    def __iter__(self):
        while True:
            yield default_collate([self.dataset[0] for _ in range(BATCH)])


class Same:
    def __init__(self):
        torch.set_num_threads(1)
        self.dataset = Constant()

    def __iter__(self):
        while True:
            yield self.dataset[0]


def whole(item):
    return item


def measure(batches, seconds):
    def some(seconds):
        start, count = time.monotonic(), 0
        while time.monotonic() < start + seconds or count < 20:
            batch = next(batches)
            if len(batch) != TENSORS or batch[0].nbytes != MIB:
                raise SystemExit("a batch of another size arrived")
            total = sum(float(tensor.view(-1)[::1024].sum()) for tensor in batch)
            if not total > 0:
                raise SystemExit("a batch arrived with wrong bytes")
            del batch
            count += 1
        return (time.monotonic() - start) / count

    some(min(1.0, seconds / 2))
    return some(seconds)


def ours(what, seconds):
    import ullage

    options = {"batch_size": BATCH} if what == "stacked" else {"batch_size": None, "collate_fn": whole}
    loader = DataLoader(
        Sample() if what == "stacked" else Constant(),
        sampler=Endless(),
        num_workers=1,
        multiprocessing_context=ullage.context("fork"),
        **options,
    )
    batches = iter(loader)
    return measure(batches, seconds), [worker.pid for worker in batches._workers]


def theirs(what, seconds, count, buffer):
    from spdl.pipeline import SharedMemorySegmentPool, iterate_in_subprocess

    pool = SharedMemorySegmentPool(segment_size=TENSORS * MIB, count=count)
    source = iterate_in_subprocess(
        Stacked if what == "stacked" else Same, buffer_size=buffer, mp_context="fork", arena=pool
    )
    spent = measure(iter(source), seconds)
    return spent, [source]


def run(way, what, seconds, spdl, setting=(0, 0)):
    command = [sys.executable, __file__, "--spdl", spdl or "", "--seconds", str(seconds)]
    command += ["--job", way, what, *map(str, setting)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{way}, {what}, {setting}: exit {done.returncode}: {done.stderr[-3000:]}")
    return json.loads(lines[-1])["wall"]


def job(way, what, seconds, setting):
    torch.set_num_threads(1)
    if way == "ullage":
        spent, pids = ours(what, seconds)
        print(json.dumps({"wall": spent}), flush=True)
        # The worker of an endless sampler is ended, not waited for.
        for pid in pids:
            os.kill(pid, 9)
        os._exit(0)
    spent, _ = theirs(what, seconds, *setting)
    print(json.dumps({"wall": spent}), flush=True)
    # Its own finalizer ends the process and removes the segments.


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spdl", metavar="DIRECTORY", help="where spdl-core was installed, if not beside torch")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", nargs="*", choices=["stacked", "constant"], default=["stacked", "constant"])
    parser.add_argument("--quick", action="store_true", help="a much smaller size")
    parser.add_argument("--job", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.spdl:
        sys.path.append(args.spdl)
    if args.job:
        way, what, *setting = args.job
        job(way, what, args.seconds, [int(number) for number in setting])
        return 0
    try:
        from spdl.pipeline import SharedMemorySegmentPool, iterate_in_subprocess  # noqa: F401
    except Exception as error:
        print(f"SPDL cannot be used here, nothing was measured: {type(error).__name__}: {error}")
        return 1
    rounds, seconds = (2, 0.3) if args.quick else (args.rounds, args.seconds)

    met = 0
    chance = random.Random(1)
    for what in args.only:
        tried = {}
        for setting in SEGMENTS[:2] if args.quick else SEGMENTS * 3:
            tried.setdefault(setting, []).append(run("spdl", what, seconds / 2, args.spdl, setting))
        for (count, buffer), spent in tried.items():
            print(
                f"{what}: SPDL, {count} segments, buffer of {buffer}: {1e6 * statistics.median(spent):.1f} us a batch"
            )
        best = min((statistics.median(spent), setting) for setting, spent in tried.items())[1]
        figures = {"ullage": [], "spdl": []}
        order = list(figures)
        for _ in range(rounds):
            chance.shuffle(order)
            for way in order:
                figures[way].append(run(way, what, seconds, args.spdl, best))
        ratio = statistics.median(t / u for t, u in zip(figures["spdl"], figures["ullage"]))
        met += ratio >= FLOOR
        print(
            f"{what}: ullage {1e6 * statistics.median(figures['ullage']):.1f} us, SPDL with {best[0]} segments "
            f"{1e6 * statistics.median(figures['spdl']):.1f} us: {ratio:.2f}x (floor {FLOOR}) "
            f"{'met' if ratio >= FLOOR else 'MISSED'}",
            flush=True,
        )
    print(f"{met} figures met their floor, {len(args.only) - met} did not")
    return 0 if met == len(args.only) else 1


if __name__ == "__main__":
    sys.exit(main())
