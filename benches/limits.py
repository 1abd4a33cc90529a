#!/usr/bin/env python3
"""The limits that a dataset of many tensors meets with torch's transport, and does not meet with ullage's.

crash    70,000 tensors, spawn and forkserver: what the trainer and its worker gain in mappings and open files.
million  1,000,000 tensors, 4 workers, 256 open files, and a /dev/shm of 1 MiB where a namespace of mounts may be made
         (elsewhere: nothing may appear in /dev/shm); fork, spawn and forkserver.
first    How much longer the first batch takes with 50,000 tensors than with one, under spawn; the same with torch
         alone (file_system) in the same run.
list     `list(loader)` of 100,000 batches with 1,024 open files.

Each run is a process of its own.

    python benches/limits.py [--only crash million first list] [--quick] [--rounds 3]
"""

import argparse
import collections
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time

import bounds
import torch
from torch.utils.data import DataLoader, Dataset

import ullage

MAPPINGS = 2
FILES = 4
FIRST = 1.5
LITTLE_SHM = 1 << 20


class Checks(bounds.Checks):
    def equal(self, what, figure, wanted):
        self.tell(f"{what}: {figure} (wanted {wanted})", figure == wanted)


class Samples(Dataset):
    """Tensor n of the list says which one it is, in two ways."""

    def __init__(self, count, words=4):
        self.samples = [torch.full((words,), number + 1, dtype=torch.float64) for number in range(count)]
        for number, sample in enumerate(self.samples):
            sample[-1] = number * 7919 % 1_000_003

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


class Looked(Samples):
    """Before the first item, each worker tells what it has mapped and open."""

    def __getitem__(self, index):
        return (self.samples[index], mappings(), files()) if index == 0 else (self.samples[index], None, None)


class Short(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.tensor([index, index * 7919 % 1_000_003])


def apart(items):
    """A batch of the tensors, beside what a worker told."""
    told = [item[1:] for item in items if item[1] is not None]
    return torch.stack([item[0] for item in items]), told[0] if told else None


def checksum(batch):
    """Sums of whole numbers, below 2**53: the same in every order."""
    return float(batch.double().sum())


def mappings(pid="self"):
    """How often each name is mapped, shared memory marked as such."""
    found = collections.Counter()
    with open(f"/proc/{pid}/maps") as file:
        for line in file:
            fields = line.split(None, 5)
            name = fields[5].strip() if len(fields) > 5 else "[no name]"
            found[f"{name} {'shared' if fields[1][3] == 's' else 'private'}"] += 1
    return found


def files(pid="self"):
    found = collections.Counter()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            name = os.readlink(f"/proc/{pid}/fd/{fd}")
            found[name.split(":[")[0] if ":[" in name else name] += 1
    return found


def told(gained):
    return ", ".join(f"{count} x {name}" for name, count in sorted(gained.items())) or "none"


def of_memory(gained):
    """Those that are memory shared between processes, of ours or of torch's."""
    return sum(count for name, count in gained.items() if "memfd:" in name or "/dev/shm" in name or "shared" in name)


def used_shm():
    space = os.statvfs("/dev/shm")
    return (space.f_blocks - space.f_bfree) * space.f_frsize


class WatchShm(threading.Thread):
    """Looks a hundred times a second at what is in /dev/shm."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.before, self.used_before = set(os.listdir("/dev/shm")), used_shm()
        self.created, self.most = set(), 0

    def look(self):
        self.created |= set(os.listdir("/dev/shm")) - self.before
        self.most = max(self.most, used_shm() - self.used_before)

    def run(self):
        while not self.ended.wait(0.01):
            self.look()

    def end(self):
        self.ended.set()
        self.join()
        self.look()


def crash(method, count):
    """One run of the crash: what is gained, in JSON."""
    dataset = Looked(count)
    alone = sum(checksum(batch) for batch, _ in DataLoader(dataset, batch_size=100, collate_fn=apart))
    before, open_before = mappings(), files()
    loader = DataLoader(
        dataset, batch_size=100, collate_fn=apart, num_workers=1, multiprocessing_context=ullage.context(method)
    )
    total, worker, during, open_during = 0.0, None, None, None
    for number, (batch, tells) in enumerate(loader):
        total += checksum(batch)
        worker = tells or worker
        if number == count // 200:
            during, open_during = mappings(), files()
    # What a worker has mapped whose dataset is one tensor.
    little = DataLoader(
        Looked(1),
        batch_size=100,
        collate_fn=apart,
        num_workers=1,
        multiprocessing_context=torch.multiprocessing.get_context(method),
    )
    worker_before = next(batch[1] for batch in little)
    return {
        "alone": alone,
        "sum": total,
        "lines": [sum(before.values()), sum(during.values())],
        "trainer": during - before,
        "trainer files": open_during - open_before,
        "worker": worker[0] - worker_before[0],
        "worker files": worker[1] - worker_before[1],
        "open": [sum(open_before.values()), sum(open_during.values())],
    }


def bare(method):
    """Open files that multiprocessing itself adds to a trainer for one process of this kind, without a queue."""
    before = files()
    process = torch.multiprocessing.get_context(method).Process(target=time.sleep, args=(60,))
    process.start()
    gained = files() - before
    process.kill()
    process.join()
    return gained


def million(method, count):
    """One run with few open files and little room in /dev/shm: the sum, and what was seen there."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    dataset = Samples(count)
    watch = WatchShm()
    watch.start()
    start = time.monotonic()
    loader = DataLoader(dataset, batch_size=1000, num_workers=4, multiprocessing_context=ullage.context(method))
    total = 0.0
    tensors, first = 0, None
    for batch in loader:
        first = first or time.monotonic() - start
        total += checksum(batch)
        tensors += len(batch)
    spent = time.monotonic() - start
    watch.end()
    wanted = sum(checksum(batch) for batch in DataLoader(dataset, batch_size=1000))
    return {
        "sum": total,
        "wanted": wanted,
        "tensors": tensors,
        "seconds": spent,
        "first": first,
        "created": sorted(watch.created),
        "most": watch.most,
        "size": os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize,
    }


def first(way, count):
    """Seconds from `iter(loader)` to the first batch."""
    torch.multiprocessing.set_sharing_strategy("file_system")
    dataset = Samples(count)
    context = ullage.context("spawn") if way == "ullage" else torch.multiprocessing.get_context("spawn")
    loader = DataLoader(dataset, batch_size=1, num_workers=1, multiprocessing_context=context)
    start = time.monotonic()
    batches = iter(loader)
    batch = next(batches)
    spent = time.monotonic() - start
    if not torch.equal(batch[0], dataset[0]):
        raise SystemExit("the first batch arrived with wrong bytes")
    print(json.dumps(spent), flush=True)
    # The rest of the batches is of no interest.
    for worker in batches._workers:
        worker.kill()
    os._exit(0)


def listed(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    loader = DataLoader(Short(4 * count), batch_size=4, num_workers=2, multiprocessing_context=ullage.context("fork"))
    start = time.monotonic()
    batches = list(loader)
    spent = time.monotonic() - start
    # Again, so that a batch whose bytes were used twice is seen.
    right = sum(
        bool((batch[:, 0] == torch.arange(4 * number, 4 * number + 4)).all()) for number, batch in enumerate(batches)
    )
    total = sum(int(batch[:, 1].sum()) for batch in batches)
    wanted = sum(index * 7919 % 1_000_003 for index in range(4 * count))
    return {"length": len(batches), "right": right, "sum": total, "wanted": wanted, "seconds": spent}


def run(*words, before=()):
    """A job of this program in a process of its own; None, and what it said, where it failed."""
    command = [*before, sys.executable, __file__, "--job", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        print(f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr[-3000:]}", flush=True)
        return None
    return json.loads(lines[-1])


def little_shm():
    """Command words that give a process a /dev/shm of 1 MiB; none where that is not permitted."""
    mount = f'mount -t tmpfs -o size={LITTLE_SHM} tmpfs /dev/shm && exec "$@"'
    for option in ("-m", "-rm"):
        words = ["unshare", option, "sh", "-c", mount, "sh"]
        with contextlib.suppress(OSError):
            if subprocess.run([*words, "true"], capture_output=True, timeout=60).returncode == 0:
                return words
    return []


def show_crash(checks, quick, rounds):
    count = 7_000 if quick else 70_000
    for method in ("spawn", "forkserver"):
        got = run("crash", method, count)
        name = f"crash, {method}, {count} tensors"
        if got is None:
            checks.tell(f"{name}: failed", False)
            continue
        checks.equal(f"{name}: sum", got["sum"], got["alone"])
        print(f"{name}: trainer's mappings: {got['lines'][0]} before, {got['lines'][1]} during")
        print(f"{name}: trainer gains: {told(got['trainer'])}")
        print(f"{name}: trainer opens: {told(got['trainer files'])}")
        print(f"{name}: worker has more than a worker of torch with one tensor: {told(got['worker'])}")
        print(f"{name}: worker opens more than that: {told(got['worker files'])}")
        checks.at_most(f"{name}: shared mappings that the trainer gains", of_memory(got["trainer"]), MAPPINGS)
        checks.at_most(f"{name}: shared mappings that the worker has more", of_memory(got["worker"]), MAPPINGS)
        gained = got["open"][1] - got["open"][0]
        print(f"{name}: trainer's open files: {got['open'][0]} before, {got['open'][1]} during")
        own = run("bare", method) or {}
        print(f"{name}: of these multiprocessing's own for one process, without queues: {told(own)}")
        # A process costs multiprocessing two or three of them, with any context.
        gained -= sum(own.values())
        checks.at_most(f"{name}: open files that the trainer gains beyond these", gained, 1 + FILES)


def show_million(checks, quick, rounds):
    count = 50_000 if quick else 1_000_000
    before = little_shm()
    if before:
        print(f"million: {' '.join(before[:2])} is permitted: /dev/shm has {LITTLE_SHM} bytes in each run")
    else:
        print("million: no namespace of mounts may be made here: /dev/shm stays as it is, and is watched")
    for method in ("fork", "spawn", "forkserver"):
        got = run("million", method, count, before=before)
        name = f"million, {method}, {count} tensors, 4 workers, ulimit -n 256"
        if got is None:
            checks.tell(f"{name}: failed", False)
            continue
        print(
            f"{name}: {got['seconds']:.1f} s, the first batch after {got['first']:.1f} s, /dev/shm {got['size']} bytes"
        )
        checks.equal(f"{name}: tensors", got["tensors"], count)
        checks.equal(f"{name}: sum", got["sum"], got["wanted"])
        checks.equal(f"{name}: created in /dev/shm", got["created"], [])
        checks.at_most(f"{name}: most used of /dev/shm", got["most"], LITTLE_SHM, " bytes")


def show_first(checks, quick, rounds):
    count = 5_000 if quick else 50_000
    more = {"ullage": [], "torch": []}
    for _ in range(1 if quick else rounds):
        for way, figures in more.items():
            many, one = run("first", way, count), run("first", way, 1)
            if many is None or one is None:
                checks.tell(f"first, {way}: failed", False)
                continue
            print(f"first, {way}: {many:.2f} s with {count} tensors, {one:.2f} s with one", flush=True)
            figures.append(many - one)
    if not more["ullage"] or not more["torch"]:
        return
    ours, theirs = statistics.median(more["ullage"]), statistics.median(more["torch"])
    print(f"first: torch (file_system) takes {theirs:.2f} s longer, {theirs / max(ours, 1e-3):.1f} times ullage's")
    checks.at_most(f"first: longer with {count} tensors than with one, spawn", ours, FIRST, " s")


def show_list(checks, quick, rounds):
    count = 5_000 if quick else 100_000
    got = run("list", count)
    if got is None:
        checks.tell("list: failed", False)
        return
    print(f"list: {count} batches, 2 workers, ulimit -n 1024: {got['seconds']:.1f} s")
    checks.equal("list: length", got["length"], count)
    checks.equal("list: batches that hold their own items", got["right"], count)
    checks.equal("list: sum", got["sum"], got["wanted"])


JOBS = {"crash": crash, "bare": bare, "million": million, "first": first, "list": listed}
PARTS = {"crash": show_crash, "million": show_million, "first": show_first, "list": show_list}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="a much smaller size")
    parser.add_argument("--rounds", type=int, default=3, help="of the part named first")
    parser.add_argument("--job", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        torch.set_num_threads(1)
        name, *words = args.job
        print(json.dumps(JOBS[name](*(int(word) if word.isdigit() else word for word in words))))
        return 0
    checks = Checks()
    for part in args.only:
        PARTS[part](checks, args.quick, args.rounds)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
