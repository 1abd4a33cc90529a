"""Three processes, each with a dataset of its own (list), or with one that all map (mapped); then a model in each."""

import multiprocessing
import sys
import time

import numpy


class Samples:
    def __init__(self, kind, path):
        if kind == "list":
            self.items = [str(number).zfill(80) for number in range(1_000_000)]
        else:
            self.items = numpy.memmap(path, dtype=numpy.uint8, mode="r", shape=(1_000_000, 80))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return len(self.items[index])


def rank(kind, path, barrier):
    import torch
    from torch.utils.data import DataLoader

    iterator = iter(DataLoader(Samples(kind, path), batch_size=4, num_workers=1))
    next(iterator)
    time.sleep(2)
    barrier.wait()
    model = torch.ones(100 << 20, dtype=torch.uint8)
    time.sleep(2)
    barrier.wait(5)  # one that was killed does not come: the others notice it soon
    print("model", model.numel())


if __name__ == "__main__":
    kind, path = sys.argv[1:]
    numpy.memmap(path, dtype=numpy.uint8, mode="w+", shape=(1_000_000, 80)).flush()
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3, timeout=60)
    ranks = [context.Process(target=rank, args=(kind, path, barrier)) for _ in range(3)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(any(process.exitcode for process in ranks))
