#!/usr/bin/env python3
"""One dataset for all workers: ullage.share beside plain torch, a list pickled into one tensor, and Arrow.

    python benches/share.py [--only memory access pack tensors node] [--quick]

memory: 2,000,000 dicts {path, label, caption}, shuffled in memory, four workers, a shuffled epoch, under each start
method: PSS of the whole tree, what it grew by since the first batch, and the time to that. access: one item at a
time. pack: how long it takes. tensors: 10,000,000 of 80 floats, to four workers started by spawn at `ulimit -n 256`.
node: two ranks of torchrun with two workers each. Arrow needs the package datasets, and is left out without it.
"""

import argparse
import ctypes
import gc
import json
import os
import pickle
import random
import resource
import statistics
import subprocess
import sys
import time
import warnings

from bounds import Checks

warnings.filterwarnings("ignore", "This DataLoader will create")

MIB = 1 << 20
COUNT = {False: 2_000_000, True: 100_000}
TENSORS = {False: 10_000_000, True: 300_000}
BATCH = 1000


def records(count, seed=1):
    """Dicts, in an order that is not that of memory."""
    chance = random.Random(seed)
    made = [
        {
            "path": f"/data/images/{i:09d}.jpg",
            "label": i * 7919 % 100_003 + 1000,
            "caption": f"A photo of thing {i * 31 % 77_777} and more",
        }
        for i in range(count)
    ]
    chance.shuffle(made)
    return made


class Serialized:
    """The published way: each item pickled, all in one tensor, and a tensor of their ends."""

    def __init__(self, items):
        import numpy as np
        import torch

        pickled = [np.frombuffer(pickle.dumps(item, protocol=-1), dtype=np.uint8) for item in items]
        self.ends = torch.from_numpy(np.cumsum([len(one) for one in pickled]))
        self.data = torch.from_numpy(np.concatenate(pickled))

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, at):
        start = 0 if at == 0 else self.ends[at - 1].item()
        return pickle.loads(memoryview(self.data[start : self.ends[at].item()].numpy()))


def arrow(items):
    """As Hugging Face's datasets hold it. Given a fingerprint, for making one pickles all there is."""
    import datasets
    import pyarrow

    columns = {key: [item[key] for item in items] for key in items[0]}
    return datasets.Dataset(pyarrow.table(columns), fingerprint="bench")


class Nothing:
    """As long, and empty."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, at):
        return at


def dataset(way, count):
    import ullage

    if way == "empty":
        return Nothing(count), 0
    if way == "one item":
        return ullage.share([{"path": "a", "label": 1, "caption": "c"}]), 0
    items = records(count)
    if way in ("plain", "native"):
        return items, 0
    if way == "freeze":
        begin = time.perf_counter()
        ullage.freeze(items)
        return items, time.perf_counter() - begin
    if way == "serialized":
        return Serialized(items), 0
    if way == "arrow":
        return arrow(items), 0
    begin = time.perf_counter()
    shared = ullage.share(items)
    return shared, time.perf_counter() - begin


def tree(pid):
    """A process and all below it."""
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                for child in file.read().split():
                    found += tree(int(child))
        except OSError:
            pass
    return found


def pss(pid=None):
    total = 0
    for one in tree(os.getpid() if pid is None else pid):
        try:
            with open(f"/proc/{one}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except OSError:
            pass
    return total


def loader_of(data, method, workers=4, ours=True):
    from torch.utils.data import DataLoader

    import ullage

    context = ullage.context(method) if ours else method
    return DataLoader(data, BATCH, shuffle=True, num_workers=workers, collate_fn=len, multiprocessing_context=context)


def memory_job(way, method, count):
    """In a process of its own."""
    import torch

    import ullage  # noqa: F401

    torch.set_num_threads(1)
    data, packing = dataset(way, count)
    gc.collect()
    ours = way not in ("plain", "serialized", "arrow")
    loader = loader_of(data, method, ours=ours)
    begin = time.perf_counter()
    batches = iter(loader)
    seen = next(batches)
    first = time.perf_counter() - begin
    at_first = pss()
    # The last batch is kept back: the workers are still there when it is measured.
    for _ in range(len(loader) - 2):
        seen += next(batches)
    at_end = pss()
    # What glibc keeps of freed lists (mallopt(3), M_MMAP_THRESHOLD: it grows with the first that is) is no copy.
    ctypes.CDLL(None).malloc_trim(0)
    trimmed = pss()
    begin = time.perf_counter()
    if way == "share" and method == "forkserver":
        del batches
        begin = time.perf_counter()
        next(iter(loader))
    later = time.perf_counter() - begin
    print(
        json.dumps(
            {
                "first": first,
                "pss": at_end,
                "trimmed": trimmed,
                "growth": at_end - at_first,
                "packing": packing,
                "later": later,
                "nbytes": getattr(data, "nbytes", 0) if way == "share" else 0,
                "seen": seen,
            }
        )
    )


def run(*args, limit=1200, **options):
    command = [sys.executable, __file__, "--job", *map(str, args)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit, **options)
    if done.returncode != 0:
        raise SystemExit(f"{args} failed ({done.returncode})")
    return json.loads(done.stdout.splitlines()[-1])


def memory(checks, quick):
    count = COUNT[quick]
    plain = {}
    for method in ("fork", "spawn"):
        for way in ("plain", "serialized", "arrow"):
            if way == "arrow":
                try:
                    import datasets  # noqa: F401
                except ImportError:
                    print("arrow: not measured, the package datasets is not there")
                    continue
            one = run("memory", way, method, count)
            plain.setdefault(method, one)
            print(
                f"{way}, {method}: PSS of the tree {one['pss'] / MIB:.0f} MiB, {one['growth'] / MIB:+.0f} MiB since "
                f"the first batch, which took {one['first']:.2f} s",
                flush=True,
            )
    for way, method in (("freeze", "fork"), ("native", "zygote")):
        if sys.version_info < (3, 12):
            print(f"{way}, {method}: not measured, Python {sys.version.split()[0]} has no immortal objects")
            continue
        one = run("memory", way, method, count)
        print(
            f"{way}, {method}: PSS of the tree {one['pss'] / MIB:.0f} MiB, {one['growth'] / MIB:+.0f} MiB since "
            f"the first batch, which took {one['first']:.2f} s",
            flush=True,
        )
        checks.at_most("growth", one["growth"] / MIB, 0.02 * plain["fork"]["growth"] / MIB, " MiB, 2 % of plain fork's")
    for method in ("fork", "spawn", "forkserver", "zygote"):
        empty = run("memory", "empty", method, count)
        single = run("memory", "one item", method, 1)
        one = run("memory", "share", method, count)
        print(
            f"share, {method}: packed {one['nbytes'] / MIB:.0f} MiB in {one['packing']:.2f} s; PSS of the tree "
            f"{one['pss'] / MIB:.0f} MiB, {one['growth'] / MIB:+.0f} MiB since the first batch; "
            f"empty {empty['pss'] / MIB:.0f} MiB; after malloc_trim in the trainer {one['trimmed'] / MIB:.0f} and "
            f"{empty['trimmed'] / MIB:.0f} MiB",
            flush=True,
        )
        for what, key in (("PSS of the tree", "pss"), ("PSS of the tree, trimmed", "trimmed")):
            checks.at_most(what, one[key] / MIB, (empty[key] + 1.15 * one["nbytes"]) / MIB, " MiB")
        checks.at_most("first batch", one["first"], single["first"] + 0.3, " s")
        checks.at_most("packing", one["packing"], 1.5 * count / COUNT[False], " s")
        if method == "forkserver":
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", "import torch"], check=True)
            checks.at_most(
                "first batch", one["first"], time.perf_counter() - begin + 0.5, " s, one import of torch more"
            )
            checks.at_most("first batch of a later epoch", one["later"], 0.2, " s")


def pack_job(count):
    import ullage

    items = records(count)
    spent = []
    for _ in range(5):
        begin = time.perf_counter()
        shared = ullage.share(items)
        spent.append(time.perf_counter() - begin)
        nbytes = shared.nbytes
        del shared
    print(json.dumps({"packing": statistics.median(spent), "nbytes": nbytes}))


def pack(checks, quick):
    count = COUNT[quick]
    one = run("pack", count)
    print(f"packing {count:,} dicts, median of 5: {one['nbytes'] / MIB:.0f} MiB")
    checks.at_most("packing", one["packing"], 1.5 * count / COUNT[False], " s")


def access_job(count):
    import numpy as np
    import torch

    import ullage

    items = records(count)
    ways = {"list": items, "serialized": Serialized(items), "share": ullage.share(items)}
    try:
        ways["arrow"] = arrow(items)
    except ImportError:
        pass
    chance = random.Random(2)
    figures = {}

    def per_item(name, function, length, times=100_000, rounds=5):
        """Other items in each round, so that none is in the caches from the round before."""
        spent = []
        for _ in range(rounds):
            places = [chance.randrange(length) for _ in range(times)]
            begin = time.perf_counter()
            function(places)
            spent.append((time.perf_counter() - begin) / times)
        figures[name] = statistics.median(spent) * 1e6

    def one(data):
        def loop(places):
            for at in places:
                data[at]["path"]

        return loop

    def three(data):
        def loop(places):
            for at in places:
                record = data[at]
                record["path"], record["label"], record["caption"]

        return loop

    def just(data):
        def loop(places):
            for at in places:
                data[at]

        return loop

    def batches(data):
        def loop(places):
            for at in range(0, len(places), 100):
                data.__getitems__(places[at : at + 100])

        return loop

    for name, data in ways.items():
        times = 3000 if name == "arrow" else 100_000
        per_item(f"{name}, one field", one(data), count, times)
        per_item(f"{name}, three fields", three(data), count, times)
    per_item("share, __getitems__ of 100", batches(ways["share"]), count)
    tensors = [torch.full((80,), float(i)) for i in range(100_000)]
    per_item("share, a tensor", just(ullage.share(tensors)), len(tensors))
    per_item("share, a tensor in a record", just(ullage.share([{"x": one} for one in tensors])), len(tensors))
    arrays = ullage.share([np.zeros(80, np.float32) for _ in range(100_000)])
    per_item("share, an array", just(arrays), len(arrays))
    print(json.dumps(figures))


def access(checks, quick):
    figures = run("access", COUNT[quick])
    for name, figure in figures.items():
        print(f"{name}: {figure:.3f} us an item")
    checks.at_most("shared record, one field", figures["share, one field"], 1.0, " us")
    checks.at_most("shared record, three fields", figures["share, three fields"], 1.2, " us")
    checks.at_most("shared tensor", figures["share, a tensor"], 1.5, " us")


class Sums:
    """The sum of each tensor; what a worker can see of itself."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, at):
        return float(self.data[at].sum())


def mappings():
    with open("/proc/self/maps") as file:
        return sum("memfd:ullage-shared" in line for line in file)


def collate_sums(batch):
    return mappings(), sum(batch)


def tensors_job(way, count):
    import torch
    from torch.utils.data import DataLoader, SequentialSampler

    import ullage

    torch.set_num_threads(1)
    packing = 0.0
    if way == "one item":
        data = ullage.share([torch.zeros(80), torch.zeros(80)])
    else:
        rows = list(
            torch.arange(count, dtype=torch.float32).remainder_(1000).unsqueeze(1).expand(count, 80).contiguous()
        )
        rows = [row.clone() for row in rows]
        begin = time.perf_counter()
        data = ullage.share(rows)
        packing = time.perf_counter() - begin
        del rows
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    loader = DataLoader(
        Sums(data),
        2 if way == "one item" else BATCH,
        sampler=SequentialSampler(data),
        num_workers=4,
        collate_fn=collate_sums,
        multiprocessing_context=ullage.context("spawn"),
    )
    begin = time.perf_counter()
    batches = iter(loader)
    mapped, total = next(batches)
    first = time.perf_counter() - begin
    for _ in range(min(len(loader) - 1, 200)):
        one = next(batches)
        mapped, total = max(mapped, one[0]), total + one[1]
    seen = min(count, 201 * BATCH) if way != "one item" else 0
    expected = sum(80.0 * (at % 1000) for at in range(seen))
    print(
        json.dumps(
            {"packing": packing, "first": first, "mapped": mapped, "is_right": total == expected, "nbytes": data.nbytes}
        )
    )


def tensors(checks, quick):
    count = TENSORS[quick]
    single = run("tensors", "one item", 2)
    one = run("tensors", "share", count)
    print(
        f"{count:,} tensors of 80 floats, packed {one['nbytes'] / MIB:.0f} MiB; "
        f"sums {'right' if one['is_right'] else 'WRONG'}"
    )
    checks.at_most("packing", one["packing"], 10 * count / TENSORS[False], " s")
    checks.at_most("mappings in a worker", one["mapped"], 1, "")
    checks.at_most("first batch", one["first"], single["first"] + 0.3, " s")
    checks.at_most("wrong sums", int(not one["is_right"]), 0, "")


def node_job(count):
    """A rank of torchrun."""
    import torch
    import torch.distributed as distributed

    import ullage

    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    shared = ullage.share(lambda: records(count), per_node=True)
    gc.collect()
    batches = iter(loader_of(shared, "forkserver", workers=2))
    for _ in range(len(shared) // BATCH - 4):
        next(batches)
    distributed.barrier()
    ours = held = 0
    for one in tree(os.getpid()):
        with open(f"/proc/{one}/smaps") as file:
            inside = False
            for line in file:
                if "-" in line.split()[0]:
                    inside = "memfd:ullage-shared" in line
                elif inside and line.startswith("Pss:"):
                    ours += int(line.split()[1]) * 1024
                    held += 1
    every = [None, None]
    distributed.all_gather_object(every, (ours, held))
    distributed.barrier()
    if rank == 0:
        print(
            json.dumps(
                {
                    "pss": sum(one[0] for one in every),
                    "nbytes": shared.nbytes,
                    "processes": sum(one[1] for one in every),
                }
            ),
            flush=True,
        )
    del batches
    distributed.destroy_process_group()


def node(checks, quick):
    count = COUNT[quick]
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        __file__,
        "--job",
        "node",
        str(count),
    ]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=1200, env=dict(os.environ, OMP_NUM_THREADS="1")
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"torchrun failed ({done.returncode})")
    one = json.loads(lines[-1])
    print(f"two ranks with two workers each: {one['processes']} processes map {one['nbytes'] / MIB:.0f} MiB")
    checks.at_most("PSS of all their mappings", one["pss"] / MIB, 1.01 * one["nbytes"] / MIB, " MiB")
    checks.at_most("processes without it", 6 - one["processes"], 0, "")


PARTS = {"memory": memory, "access": access, "pack": pack, "tensors": tensors, "node": node}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="a much smaller size")
    parser.add_argument("--job", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        part, *rest = args.job
        job = {"memory": memory_job, "access": access_job, "pack": pack_job, "tensors": tensors_job, "node": node_job}[
            part
        ]
        job(*(int(one) if one.isdigit() else one for one in rest))
        return 0
    checks = Checks()
    for name in args.only:
        PARTS[name](checks, args.quick)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
