#!/usr/bin/env python3
"""What a running loader costs beside its work, and whether it stays that way.

Each part runs in a process of its own, with one forked worker:

calls     System calls a batch of the trainer and its worker, counted by perf at full speed, and page faults a batch.
offsets   The place of a batch in the arena is the same in both processes, and few places serve many batches.
size-8    100,000 batches of 1 KiB to 64 MiB, their logarithms uniform; the trainer keeps up to 8 (and 512 MiB), and
          lets go one by chance: the arena and the processes' resident size do not grow in the second half.
size-512  The same, but it keeps any number of up to 512 MiB.

A batch of the last two is made where torch's collate would make it, without a copy; both processes touch a word of
each of its pages, and the trainer looks whether they are right when it comes and again when it lets go.

    python benches/steady.py [--only calls offsets size-8 size-512] [--quick] [--seed 1]
"""

import argparse
import collections
import functools
import itertools
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import time

import torch
from bounds import Checks
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

import ullage
from ullage import _context

CALLS = 8
FAULTS = 1
GROWTH = 1.0  # per cent
DISTINCT = 16
MIB = 1 << 20
PAGE_WORDS = 1024


class Prebuilt(Dataset):
    """One constant sample; batches are made of fresh tensors by torch's collate."""

    def __init__(self, sample):
        self.sample = sample

    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        return self.sample


class Repeated(Sampler):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return itertools.repeat(0, self.count)


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


def says(batch, number):
    return bool((batch[::PAGE_WORDS] == number).all())


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


class NotCounted(Exception):
    """perf is not installed, or may not count here."""


def system_calls(pids, work):
    """System calls of these processes while `work` runs; perf is attached before it begins to count."""
    control, told = os.pipe()
    heard, answer = os.pipe()
    command = ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", ",".join(map(str, pids))]
    command += ["-D", "-1", "--control", f"fd:{control},{answer}"]
    try:
        perf = subprocess.Popen(
            command, pass_fds=(control, answer), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
    except FileNotFoundError:
        raise NotCounted("perf is not installed") from None
    os.close(control)
    os.close(answer)
    try:
        for word in (b"enable\n", b"disable\n"):
            os.write(told, word)
            if not os.read(heard, 16):
                break
            if word == b"enable\n":
                work()
    except BrokenPipeError:
        pass
    perf.send_signal(signal.SIGINT)
    text = perf.communicate(timeout=60)[1].strip()
    os.close(told)
    os.close(heard)
    for line in text.splitlines():
        if "raw_syscalls:sys_enter" in line and line.split(",")[0].isdigit():
            return int(line.split(",")[0])
    raise NotCounted(f"perf may not count system calls here: {text}")


def calls(checks, quick):
    torch.set_num_threads(1)
    workloads = [
        ("64x1024 float32", torch.rand(1024), 4_000 if quick else 40_000, CALLS),
        ("dict of 30, 64x64", {f"field{n}": torch.rand(64) for n in range(30)}, 1_000 if quick else 10_000, CALLS),
        ("64x3x224x224 float32", torch.rand(3, 224, 224), 100 if quick else 1_000, None),
    ]
    for name, sample, count, bound in workloads:
        warm = max(100, count // 10)
        loader = DataLoader(
            Prebuilt(sample),
            batch_size=64,
            sampler=Repeated(64 * (warm + 2 * count + 10)),
            num_workers=1,
            multiprocessing_context=ullage.context("fork"),
        )
        batches = iter(loader)
        pids = [os.getpid(), batches._workers[0].pid]

        def some(number, batches=batches):
            start = time.monotonic()
            for _ in range(number):
                batch = next(batches)
                tensor = next(iter(batch.values())) if isinstance(batch, dict) else batch
                if not float(tensor.view(-1)[-1]) >= 0:
                    raise SystemExit("a batch arrived with wrong bytes")
            return 1e6 * (time.monotonic() - start) / number

        some(warm)
        before = faults(pids)
        spent = some(count)
        after = faults(pids)
        print(f"{name}: {count} batches, {spent:.1f} us a batch")
        checks.at_most(f"{name}: page faults of trainer and worker", (after - before) / count, FAULTS, " a batch")
        try:
            counted = system_calls(pids, functools.partial(some, count)) / count
        except NotCounted as error:
            print(f"{name}: system calls not counted: {error}")
            counted = math.inf
        if bound is None:
            print(f"{name}: system calls of trainer and worker: {counted:.4g} a batch (no bound)", flush=True)
        else:
            checks.at_most(f"{name}: system calls of trainer and worker", counted, bound, " a batch")
        for _ in batches:
            pass


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


def size(checks, quick, seed, most, bytes_held):
    torch.set_num_threads(1)
    count = 5_000 if quick else 100_000
    chance = random.Random(seed)
    sizes = [int(math.exp(chance.uniform(math.log(1024), math.log(64 * MIB)))) // 4 for _ in range(count)]
    loader = DataLoader(
        Sized(sizes), batch_size=None, collate_fn=whole, num_workers=1, multiprocessing_context=ullage.context("fork")
    )
    name = f"kept: {'at most ' + str(most) if most < count else 'any number'}, {bytes_held // MIB} MiB"
    kept, held, wrong = [], 0, 0
    samples = {"arena (blocks of its memfd)": [], "trainer (RssShmem)": [], "worker (RssShmem)": []}
    needed = []
    start = time.monotonic()
    batches = iter(loader)
    worker = batches._workers[0].pid
    for number, batch in enumerate(batches):
        wrong += not says(batch, number)
        kept.append((number, batch))
        held += batch.nbytes
        del batch
        # What is held, and the three batches that the worker may have made meanwhile.
        needed.append((held + 4 * sum(sizes[number + 1 : number + 4])) / MIB)
        while len(kept) > most or held > bytes_held:
            # The one that came last as well as any other.
            old, gone = kept.pop(chance.randrange(len(kept)))
            wrong += not says(gone, old)
            held -= gone.nbytes
            del gone
        if number % (count // 1000) == 0:
            blocks = os.fstat(_context.arena().fileno()).st_blocks * 512 / MIB
            for figures, figure in zip(samples.values(), (blocks, resident(os.getpid()), resident(worker))):
                figures.append(figure)
        if (number + 1) % (count // 10) == 0:
            told = ", ".join(f"{what} {figures[-1]:.1f} MiB" for what, figures in samples.items())
            spent = time.monotonic() - start
            print(f"{name}: {number + 1} batches, {spent:.0f} s, held {held / MIB:.1f} MiB: {told}", flush=True)
    checks.at_most(f"{name}: batches of {count} with wrong bytes at arrival or at release", wrong, 0)
    warm, middle = len(needed) // 10, len(needed) // 2
    print(f"{name}: most needed at once: {max(needed[:middle]):.1f} MiB, second half {max(needed[middle:]):.1f} MiB")
    for what, figures in samples.items():
        warm, middle = len(figures) // 10, len(figures) // 2
        first, second = figures[warm:middle], figures[middle:]
        mean = statistics.mean(second)
        print(
            f"{name}: {what}: first half, from its second tenth on: mean {statistics.mean(first):.1f} MiB, "
            f"most {max(first):.1f}; second half: mean {mean:.1f} MiB, most {max(second):.1f}"
        )
        growth = 100 * (mean / max(first) - 1)
        checks.at_most(f"{name}: {what}: mean of the second half above the most of the first", growth, GROWTH, " %")


PARTS = {
    "calls": calls,
    "offsets": offsets,
    "size-8": functools.partial(size, most=8, bytes_held=512 * MIB),
    "size-512": functools.partial(size, most=1 << 40, bytes_held=512 * MIB),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="a much smaller size")
    parser.add_argument("--seed", type=int, default=1, help="of the sizes, and of what is let go")
    parser.add_argument("--job", choices=list(PARTS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        checks = Checks()
        more = {"seed": args.seed} if args.job.startswith("size") else {}
        PARTS[args.job](checks, args.quick, **more)
        return checks.end()
    failed = 0
    for part in args.only:
        command = [sys.executable, __file__, "--job", part, "--seed", str(args.seed)] + ["--quick"] * args.quick
        failed += subprocess.run(command, timeout=3600).returncode != 0
    print(f"{len(args.only) - failed} of {len(args.only)} parts met all their bounds")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
