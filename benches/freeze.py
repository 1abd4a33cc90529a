#!/usr/bin/env python3
"""What `ullage.freeze` does for forked workers, and what it costs.

growth    2,000,000 dicts {path, label, caption}, read in shuffled order by four forked workers of a DataLoader: by how
          much their private memory grows from the first batch to the end of the epoch, frozen and not.
access    Items of a frozen list beside those of a list that is not, in order and shuffled.
speed     10 million objects frozen, each kind in allocation order and with the list shuffled before; per object that
          was newly made immortal.

Each measurement runs in a process of its own.

    python benches/freeze.py [--only growth access speed] [--quick]
"""

import argparse
import gc
import json
import random
import statistics
import subprocess
import sys
import time

from bounds import Checks

import ullage

GROWTH = 2.0  # per cent of plain fork's
ACCESS = 1.1
IN_ORDER = 0.05  # microseconds
SHUFFLED = 0.15
MB = 1e6


def dicts(count):
    return [
        {"path": f"/data/train/{n:08d}.jpg", "label": n + 1000, "caption": f"a photo of thing number {n}, on a table"}
        for n in range(count)
    ]


class Sample:
    def __init__(self, n):
        self.path, self.label, self.caption = (
            f"/data/train/{n:08d}.jpg",
            n + 1000,
            f"a photo of thing number {n}, on a table",
        )


def instances(count):
    return [Sample(n) for n in range(count)]


def tuples(count):
    return [(f"/data/train/{n:08d}.jpg", n + 1000, f"a photo of thing number {n}, on a table") for n in range(count)]


KINDS = {"dicts": dicts, "instances": instances, "tuples": tuples}


def private(pids):
    """Private memory of processes, bytes."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += sum(1024 * int(line.split()[1]) for line in file if line.startswith("Private_"))
    return total


def growth(way, count):
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Items(Dataset):
        def __init__(self):
            self.items = dicts(count)

        def __len__(self):
            return len(self.items)

        def __getitem__(self, index):
            item = self.items[index]
            return len(item["path"]), item["label"], len(item["caption"])

    torch.set_num_threads(1)
    torch.manual_seed(1)
    items = Items()
    if way == "frozen":
        ullage.freeze(items)
    before = private(["self"])
    loader = DataLoader(
        items, batch_size=100, shuffle=True, num_workers=4, multiprocessing_context="fork", persistent_workers=True
    )
    batches = iter(loader)
    next(batches)
    workers = [worker.pid for worker in batches._workers]
    first = private(workers)
    start = time.monotonic()
    seen = 100 + sum(len(batch[0]) for batch in batches)
    spent = time.monotonic() - start
    assert seen == count
    return {"before": before, "first": first, "last": private(workers), "seconds": spent}


def access(order, count):
    plain, frozen = dicts(count), dicts(count)
    ullage.freeze(frozen)
    indices = list(range(count))
    if order == "shuffled":
        random.Random(1).shuffle(indices)

    def read(items):
        start = time.perf_counter()
        for index in indices:
            items[index]["label"]
        return time.perf_counter() - start

    gc.disable()
    ways = {"plain": [], "frozen": []}
    for number in range(9):
        # Whichever comes second finds the caches fuller.
        for name in ("plain", "frozen") if number % 2 else ("frozen", "plain"):
            ways[name].append(read(plain if name == "plain" else frozen))
    return {name: statistics.median(times) / count for name, times in ways.items()}


def speed(kind, order, count):
    gc.disable()
    items = KINDS[kind](count)
    gc.enable()
    gc.collect()  # or the first object that freeze makes would set off what building put off
    if order == "shuffled":
        random.Random(1).shuffle(items)
    start = time.perf_counter()
    result = ullage.freeze(items)
    spent = time.perf_counter() - start
    return {"frozen": result.frozen, "seconds": spent, "said": repr(result)}


def apart(*args):
    """Runs one measurement in a process of its own."""
    command = [sys.executable, __file__, "--job", json.dumps(args)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=1800, check=True).stdout)


def show_growth(checks, quick):
    count = 200_000 if quick else 2_000_000
    grew = {}
    for way in ("plain", "frozen"):
        told = apart("growth", way, count)
        grew[way] = told["last"] - told["first"]
        print(
            f"growth, {way}: {count} dicts in a trainer of {told['before'] / MB:.0f} MB; its four workers have "
            f"{told['first'] / MB:.1f} MB of their own at the first batch and {told['last'] / MB:.1f} MB at the end: "
            f"+{grew[way] / MB:.1f} MB in {told['seconds']:.1f} s",
            flush=True,
        )
    checks.at_most(
        "growth of the workers' private memory, of plain fork's", 100 * grew["frozen"] / grew["plain"], GROWTH, " %"
    )


def show_access(checks, quick):
    for order in ("in order", "shuffled"):
        told = apart("access", order, 100_000 if quick else 1_000_000)
        print(f"access, {order}: list {1e9 * told['plain']:.1f} ns, frozen {1e9 * told['frozen']:.1f} ns", flush=True)
        checks.at_most(
            f"access to an item and its label, {order}, to a list's", told["frozen"] / told["plain"], ACCESS, "x"
        )


def show_speed(checks, quick):
    for kind in KINDS:
        for order, bound in (("in order", IN_ORDER), ("shuffled", SHUFFLED)):
            told = apart("speed", kind, order, 250_000 if quick else 2_500_000)
            print(f"speed, {kind}, {order}: {told['seconds']:.3f} s, {told['said']}", flush=True)
            checks.at_most(f"speed, {kind}, {order}", 1e6 * told["seconds"] / told["frozen"], bound, " us an object")


JOBS = {"growth": growth, "access": access, "speed": speed}
PARTS = {"growth": show_growth, "access": show_access, "speed": show_speed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        name, *rest = args.job
        print(json.dumps(JOBS[name](*rest)))
        return 0
    try:
        ullage.freeze([])
    except ullage.Error as error:
        sys.exit(f"{error}")
    print(f"Python {sys.version.split()[0]}")
    checks = Checks()
    for part in args.only:
        PARTS[part](checks, args.quick)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
