"""Workers that are not forked each unpickle the dataset: a list of str, or few of them, or the same text in a mapped file.

At the start of the epoch the workers' Private_Dirty is summed from smaps_rollup, a second way to count the copies.

    load.py spawn|forkserver|fork list|mapped ITEMS SECONDS [default]

`default`: the loader is not told its start method, the program is.
"""

import multiprocessing
import os
import sys
import tempfile
import time

import numpy
from torch.utils.data import DataLoader, Dataset

WORKERS = 3


class Names(Dataset):
    """Names in a list of str."""

    def __init__(self, items):
        self.names = [f"/data/images/train/{n % 1000:04d}/{n:08d}.jpeg" for n in range(items)]

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return len(self.names[index])


class Mapped(Dataset):
    """As many bytes in a file, mapped by every worker."""

    def __init__(self, items, path):
        self.items, self.path, self.blob = items, path, None
        numpy.lib.format.open_memmap(path, "w+", numpy.uint8, (items, 96)).fill(7)

    def __len__(self):
        return self.items

    def __getitem__(self, index):
        if self.blob is None:
            self.blob = numpy.load(self.path, mmap_mode="r")
        return int(self.blob[index].sum())


def private(pid):
    """Private_Dirty of a process, MiB."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_Dirty:")) / 1024


def main():
    method, kind, items, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    chosen = method
    if sys.argv[5:] == ["default"]:
        multiprocessing.set_start_method(method)
        chosen = None
    with tempfile.TemporaryDirectory() as folder:
        dataset = Names(items) if kind == "list" else Mapped(items, os.path.join(folder, "names.npy"))
        loader = DataLoader(dataset, batch_size=100, num_workers=WORKERS, multiprocessing_context=chosen)
        iterator = iter(loader)
        first = [int(next(iterator).sum()) for _ in range(WORKERS)]
        sizes = [private(worker.pid) for worker in iterator._workers]
        time.sleep(seconds)
        print(f"first batches {first}; Private_Dirty of the workers: {sizes} MiB, together {sum(sizes):.0f}")
        # In the order that ends the workers at once.
        del iterator


if __name__ == "__main__":
    main()
