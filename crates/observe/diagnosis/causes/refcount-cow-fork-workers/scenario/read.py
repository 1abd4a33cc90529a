"""Forked workers read every item of a dataset: a list of str, or the same text in one array and one of offsets.

At the end the workers' Private_Dirty and Shared_Dirty are summed from smaps_rollup, a second way to count what they have copied.

    read.py list|array|leak|parent ITEMS SECONDS

`leak`: each worker keeps something of its own. `parent`: the parent writes again what its only worker inherited.
"""

import sys
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset


def pause(index):
    """Reading is work: it takes some seconds to get through the dataset."""
    if index % 1000 == 0:
        time.sleep(0.004)


class Names(Dataset):
    """Names in a list of str."""

    def __init__(self, items):
        self.names = [f"/data/images/train/{n % 1000:04d}/{n:08d}.jpeg" for n in range(items)]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        pause(index)
        return len(self.names[index])


class Packed(Names):
    """The same names as bytes and offsets."""

    def __init__(self, items):
        super().__init__(items)
        data = [name.encode() for name in self.names]
        del self.names
        self.blob = numpy.frombuffer(b"".join(data), numpy.uint8)
        self.ends = numpy.cumsum([0] + [len(item) for item in data])

    def __len__(self):
        return len(self.ends) - 1

    def __getitem__(self, index):
        pause(index)
        return len(self.blob[self.ends[index] : self.ends[index + 1]].tobytes().decode())


class Leaking(Packed):
    """Keeps something for each item read: memory of the worker's own, and none of its parent's."""

    def __getitem__(self, index):
        self.kept = getattr(self, "kept", [])
        self.kept.append(numpy.ones(20))
        return super().__getitem__(index)


def dirty(pid):
    """(Private_Dirty, Shared_Dirty) of a process, MiB."""
    sizes = {"Private_Dirty": 0, "Shared_Dirty": 0}
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in sizes:
                sizes[name] = int(rest.split()[0]) / 1024
    return sizes["Private_Dirty"], sizes["Shared_Dirty"]


def main():
    kind, items, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    dataset = {"list": Names, "array": Packed, "leak": Leaking, "parent": Packed}[kind](items)
    workers = 1 if kind == "parent" else 4
    mine = numpy.ones(32 << 20) if kind == "parent" else numpy.ones(1)  # 256 MiB
    # Every worker reads every item, as workers do after some epochs of shuffling.
    batches = [list(range(at, at + 4000)) for at in range(0, items, 4000) for _ in range(workers)]
    loader = DataLoader(dataset, batch_sampler=batches, num_workers=workers, multiprocessing_context="fork")
    begin = time.monotonic()
    iterator = iter(loader)
    pids = [worker.pid for worker in iterator._workers]
    before = [dirty(pid) for pid in pids]
    total = 0
    for step, batch in enumerate(iterator):
        total += int(batch.sum())
        mine += 1
        if step == len(batches) - workers * 3:
            # The workers wait for more to do; what they have copied stands still, however long the reading took.
            time.sleep(seconds)
            after = [dirty(pid) for pid in pids]
    print(f"read {total} characters in {time.monotonic() - begin:.1f} s; torch {torch.__version__}")
    print(f"Private_Dirty of the workers: {sum(a for a, _ in before):.0f} MiB, then {sum(a for a, _ in after):.0f} MiB")
    print(f"Shared_Dirty of the workers: {sum(b for _, b in before):.0f} MiB, then {sum(b for _, b in after):.0f} MiB")


if __name__ == "__main__":
    main()
