"""Trains on many small tensors inside a multiprocessing.Process, with one loader worker.

The shape of the crash "unable to mmap 320 bytes ... Cannot allocate memory (12)": the start method decides
whether the dataset travels to the worker (spawn, forkserver) or is inherited (fork); the sharing strategy
decides whether each tensor costs a mapping or a mapping and a descriptor.
"""

import argparse
import multiprocessing
import sys

import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset


class Tensors(Dataset):
    def __init__(self, count):
        self.items = [torch.zeros(80) for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class Packed(Dataset):
    """The cure: one tensor for all samples."""

    def __init__(self, count):
        self.items = torch.zeros(count, 80)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def train(arguments):
    torch.multiprocessing.set_sharing_strategy(arguments.strategy)
    dataset = (Packed if arguments.packed else Tensors)(arguments.tensors)
    loader = DataLoader(
        dataset,
        batch_size=64,
        num_workers=1,
        multiprocessing_context=arguments.loader_context,
    )
    seen = 0
    for number, batch in enumerate(loader):
        seen += len(batch)
        if number == 50:
            break
    print("read", seen, "samples", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start-method", choices=["fork", "spawn", "forkserver"], default="forkserver")
    parser.add_argument("--strategy", choices=["file_system", "file_descriptor"], default="file_system")
    parser.add_argument("--tensors", type=int, default=70_000)
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--loader-context", choices=["fork", "spawn", "forkserver"])
    arguments = parser.parse_args()
    multiprocessing.set_start_method(arguments.start_method)
    trainer = multiprocessing.Process(target=train, args=(arguments,))
    trainer.start()
    trainer.join()
    sys.exit(1 if trainer.exitcode else 0)
