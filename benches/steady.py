#!/usr/bin/env python3
"""What a running loader costs beside its work, and whether it stays that way: system calls, faults, offsets, size.

Four parts, each in a process of its own, with one forked worker:

calls    System calls a batch of the trainer and its worker, counted by perf at full speed, and page faults a batch.
offsets  The place of a batch in the arena is the same in both processes, and few places serve many batches.
size     Batches of very different sizes, kept for a random while: the arena and the resident size of the processes
         do not grow in the second half of the run.

    python benches/steady.py [--only calls offsets size] [--quick]
"""

import argparse
import collections
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

import ullage
from ullage import _context

CALLS = 8
FAULTS = 1
GROWTH = 0.01
DISTINCT = 16
MIB = 1 << 20
PAGE_WORDS = 1024


class Checks:
    """Prints each figure beside its bound, and counts."""

    def __init__(self):
        self.met = self.missed = 0

    def at_most(self, what, figure, bound, unit=""):
        fine = figure <= bound
        self.met, self.missed = self.met + fine, self.missed + (not fine)
        print(f"{what}: {figure:.4g}{unit} (bound {bound:g}{unit}) {'met' if fine else 'MISSED'}", flush=True)

    def end(self):
        print(f"{self.met} figures met their bound, {self.missed} did not", flush=True)
        return 0 if self.missed == 0 else 1


class Prebuilt(Dataset):
    """One constant sample; batches are made of fresh tensors by torch's collate."""

    def __init__(self, sample):
        self.sample = sample

    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        return self.sample


class Endless(Sampler):
    def __iter__(self):
        while True:
            yield 0


class Sized(Dataset):
    """Item n is a batch of sizes[n] words, made in the arena without a copy; a word of each page says n."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, index):
        storage = torch.UntypedStorage._new_shared(4 * self.sizes[index])
        batch = torch.empty(0, dtype=torch.int32).set_(storage)
        batch[::PAGE_WORDS] = index
        return batch


def whole(item):
    return item


def faults(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        total += int(fields[7]) + int(fields[9])
    return total


def offset_in_arena(address):
    """Place of an address in the arena's memfd, from the mappings of this process; None where it is not of it."""
    with open("/proc/self/maps") as file:
        for line in file:
            span, _, offset, _ = line.split(None, 3)
            first, last = (int(end, 16) for end in span.split("-"))
            if first <= address < last:
                return address - first + int(offset, 16) if "memfd:ullage-arena" in line else None
    return None


def collate_with_offset(samples):
    batch = default_collate(samples)
    return batch, offset_in_arena(batch.data_ptr())


class Perf:
    """Counts the system calls of processes between `start` and `stop`; attached before it counts."""

    def __init__(self, pids):
        control, self.control = os.pipe()
        self.answer, answer = os.pipe()
        command = ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", ",".join(map(str, pids))]
        command += ["-D", "-1", "--control", f"fd:{control},{answer}"]
        self.process = subprocess.Popen(
            command, pass_fds=(control, answer), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        os.close(control)
        os.close(answer)

    def tell(self, word):
        os.write(self.control, word.encode() + b"\n")
        if not os.read(self.answer, 16):
            raise SystemExit(f"perf may not count system calls here: {self.process.stderr.read().strip()}")

    def stop(self):
        self.tell("disable")
        self.process.send_signal(2)
        text = self.process.communicate(timeout=60)[1]
        for line in text.splitlines():
            if "raw_syscalls:sys_enter" in line:
                count = line.split(",")[0]
                if count.isdigit():
                    return int(count)
        raise SystemExit(f"perf counted no system calls: {text.strip()}")


def calls(checks, quick):
    torch.set_num_threads(1)
    workloads = [
        ("64x1024 float32", torch.rand(1024), 4_000 if quick else 40_000),
        ("dict of 30, 64x64", {f"field{n}": torch.rand(64) for n in range(30)}, 1_000 if quick else 10_000),
        ("64x3x224x224 float32", torch.rand(3, 224, 224), 20 if quick else 200),
    ]
    for name, sample, count in workloads:
        loader = DataLoader(
            Prebuilt(sample),
            batch_size=64,
            sampler=Endless(),
            num_workers=1,
            multiprocessing_context=ullage.context("fork"),
        )
        batches = iter(loader)
        pids = [os.getpid(), batches._workers[0].pid]

        def some(number, batches=batches):
            for _ in range(number):
                batch = next(batches)
                tensor = next(iter(batch.values())) if isinstance(batch, dict) else batch
                if not float(tensor.view(-1)[-1]) >= 0:
                    raise SystemExit("a batch arrived with wrong bytes")

        some(max(20, count // 10))
        before = faults(pids)
        start = time.monotonic()
        some(count)
        spent = time.monotonic() - start
        after = faults(pids)
        print(f"{name}: {count} batches, {1e6 * spent / count:.1f} us a batch without perf")
        checks.at_most(f"{name}: page faults of trainer and worker", (after - before) / count, FAULTS, " a batch")
        if shutil.which("perf") is None:
            raise SystemExit("perf is not installed: system calls cannot be counted")
        perf = Perf(pids)
        perf.tell("enable")
        start = time.monotonic()
        some(count)
        spent = time.monotonic() - start
        counted = perf.stop()
        print(f"{name}: {counted} system calls in {count} batches, {1e6 * spent / count:.1f} us a batch under perf")
        checks.at_most(f"{name}: system calls of trainer and worker", counted / count, CALLS, " a batch")
        batches._workers[0].kill()
        # The worker of an endless sampler was ended by us: nothing more is to be told about it.
        torch.utils.data._utils.signal_handling._remove_worker_pids(id(batches))
        batches._workers_status[0] = False
        batches._shutdown = True
        del batches


def offsets(checks, quick):
    count = 1000
    loader = DataLoader(
        Prebuilt(torch.rand(1024)),
        batch_size=64,
        sampler=[0] * 64 * count,
        num_workers=1,
        collate_fn=collate_with_offset,
        multiprocessing_context=ullage.context("fork"),
    )
    seen = collections.Counter()
    differ = elsewhere = 0
    for batch, offset in loader:
        here = offset_in_arena(batch.data_ptr())
        elsewhere += offset is None or here is None
        differ += here != offset
        seen[here] += 1
    print(f"offsets: {count} batches of 64x1024, at {len(seen)} places of the arena; the most used: ", end="")
    print(", ".join(f"{place:#x} ({times})" for place, times in seen.most_common(4) if place is not None))
    checks.at_most("offsets: batches outside of the arena", elsewhere, 0)
    checks.at_most("offsets: batches that the trainer sees at another offset than the worker", differ, 0)
    checks.at_most(f"offsets: distinct offsets of {count} equal batches", len(seen), DISTINCT)


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("RssShmem:"):
                return int(line.split()[1]) / 1024
    return 0.0


def size(checks, quick):
    torch.set_num_threads(1)
    count = 5_000 if quick else 100_000
    chance = random.Random(1)
    sizes = [int(math.exp(chance.uniform(math.log(1024), math.log(64 * MIB)))) // 4 for _ in range(count)]
    loader = DataLoader(
        Sized(sizes), batch_size=None, collate_fn=whole, num_workers=1, multiprocessing_context=ullage.context("fork")
    )
    kept, held, wrong = [], 0, 0
    samples = {"arena (blocks of its memfd)": [], "trainer (RssShmem)": [], "worker (RssShmem)": []}
    every = max(1, count // 1000)
    start = time.monotonic()

    def is_right(number, batch):
        words = batch[::PAGE_WORDS]
        return bool((words == number).all())

    batches = iter(loader)
    worker = batches._workers[0].pid
    for number, batch in enumerate(batches):
        wrong += not is_right(number, batch)
        kept.append((number, batch))
        held += batch.nbytes
        # One more than may be held: which one goes is chance. Often more than one goes, so that the pool breathes.
        while len(kept) > 8 or held > 512 * MIB or (kept and chance.random() < 0.1):
            old, gone = kept.pop(chance.randrange(len(kept)))
            wrong += not is_right(old, gone)
            held -= gone.nbytes
            del gone
        del batch
        if number % every == every - 1:
            blocks = os.fstat(_context.arena().fileno()).st_blocks * 512 / MIB
            for figures, figure in zip(samples.values(), (blocks, resident(os.getpid()), resident(worker))):
                figures.append(figure)
        if (number + 1) % (count // 10) == 0:
            told = ", ".join(f"{name} {figures[-1]:.1f} MiB" for name, figures in samples.items())
            print(f"size: {number + 1} batches, {time.monotonic() - start:.0f} s, held {held / MIB:.1f} MiB: {told}")
            sys.stdout.flush()
    checks.at_most(f"size: batches of {count} with wrong bytes at arrival or at release", wrong, 0)
    for name, figures in samples.items():
        middle = len(figures) // 2
        # The first fifth is the warm-up: the extreme sizes must have met at least once.
        first, second = figures[len(figures) // 5 : middle], figures[middle:]
        mean = statistics.mean(first)
        growth = statistics.mean(second) / mean - 1
        print(
            f"size: {name}: first half after warm-up {mean:.1f} MiB (at most {max(first):.1f}), "
            f"second half {statistics.mean(second):.1f} MiB (at most {max(second):.1f})"
        )
        checks.at_most(f"size: {name}: growth of the mean", 100 * growth, 100 * GROWTH, " %")


PARTS = {"calls": calls, "offsets": offsets, "size": size}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="a much smaller size")
    parser.add_argument("--job", choices=list(PARTS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        checks = Checks()
        PARTS[args.job](checks, args.quick)
        return checks.end()
    failed = 0
    for part in args.only:
        command = [sys.executable, __file__, "--job", part] + ["--quick"] * args.quick
        failed += subprocess.run(command, timeout=3600).returncode != 0
    print(f"{len(args.only) - failed} of {len(args.only)} parts met all their bounds")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
