"""A training job that dies of memory exhaustion with 250 MiB in /dev/shm and gigabytes free.

70,000 samples of 80 floats, each a tensor of its own; the trainer runs in a `multiprocessing.Process` started
by forkserver, so its DataLoader's one worker is too, and the dataset is sent to it through shared memory: one
mapping for each tensor. Run it as `ullage run -- python examples/crash.py`.
"""

import argparse
import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, count):
        self.samples = [torch.zeros(80) for _ in range(count)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def train(count, workers, strategy):
    # torch's default on Linux is file_descriptor: one open file for each tensor, so that `ulimit -n` (20,000
    # on many machines) is met first. file_system keeps no file open, and meets the kernel's limit on mappings.
    torch.multiprocessing.set_sharing_strategy(strategy)
    loader = DataLoader(Samples(count), batch_size=100, num_workers=workers)
    total = sum(float(batch.sum()) for batch in loader)
    print(f"trained on {count} samples, sum {total}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=70_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--start-method", choices=["fork", "spawn", "forkserver"], default="forkserver")
    parser.add_argument("--strategy", choices=["file_system", "file_descriptor"], default="file_system")
    options = parser.parse_args()

    context = multiprocessing.get_context(options.start_method)
    trainer = context.Process(target=train, args=(options.samples, options.workers, options.strategy))
    trainer.start()
    trainer.join()
    raise SystemExit(trainer.exitcode if trainer.exitcode >= 0 else 1)


if __name__ == "__main__":
    main()
