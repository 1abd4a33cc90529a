"""What the jobs have in common: what do they train on, where did each batch lie, and what did they learn?

A job is run by run.py in a process of its own, without ullage or with one of the ways of switching it on. Each of its
trainers writes one JSON file: the loss of every step, a digest of the final weights, and how many tensors lay where.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random

import torch
from torch.utils._pytree import tree_leaves

WIDTH, CLASSES = 16, 3
# ullage copies a smaller tensor out of the arena where it arrives, unless torch's collate made it there.
COPIED_OUT_BELOW = 8 << 10


class Rows(torch.utils.data.Dataset):
    """Rows with their class; noise is added in the worker, so that a worker seeded otherwise is noticed."""

    def __init__(self, length, noise=0.1):
        self.noise = noise
        generator = torch.Generator().manual_seed(1)
        self.x = torch.randn(length, WIDTH, generator=generator)
        self.y = torch.randint(0, CLASSES, (length,), generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index] + self.noise * (torch.randn(WIDTH) + random.random()), self.y[index]


def model():
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 8), torch.nn.ReLU(), torch.nn.Linear(8, CLASSES))


def step(net, optimizer, batch):
    """One plain training step; returns its loss."""
    x, y = batch
    loss = torch.nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def must(true, what):
    """The job does what it is here to try; where it does not, it fails."""
    if not true:
        raise SystemExit(f"the job itself: not so: {what}")


def options(framework, variants=("",)):
    """The command line of a job. Threads and seeds are set, and ullage is installed where that is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=["without", "context", "install"], required=True)
    parser.add_argument("--method", choices=["fork", "spawn", "forkserver"], required=True)
    parser.add_argument("--variant", choices=variants, default=variants[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True, help="a folder, for one file a trainer")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(given.seed)
    random.seed(given.seed)
    multiprocessing.set_start_method(given.method)
    # The fork server imports once what its workers need.
    multiprocessing.set_forkserver_preload(["torch", framework])
    if given.way == "install":
        import ullage

        ullage.install()
    return given


def loader_context(given):
    """What is given to a loader as `multiprocessing_context`."""
    if given.way == "context":
        import ullage

        return ullage.context(given.method)
    return None  # the program's own start method, set above


class Record:
    """What one trainer saw and learnt."""

    def __init__(self, given):
        self.given = given
        self.losses = []
        self.batches = self.batches_in_arena = 0
        self.tensors = {"arena": 0, "small copy": 0, "torch segment": 0, "elsewhere": 0}
        self.disagreed = 0

    def saw(self, batch):
        """To be called in the trainer with each batch of a loader, as the framework hands it to the training step.

        Where a tensor lies is asked of the kernel, which is no part of ullage, and where ullage is on, of it as well.
        Returns the batch.
        """
        with open("/proc/self/maps") as file:
            mappings = [line.split(maxsplit=5) for line in file]
        found = []
        for tensor in tree_leaves(batch):
            if isinstance(tensor, torch.Tensor):
                found.append(_where(tensor, mappings))
                self.tensors[found[-1]] += 1
                if self.given.way != "without":
                    from ullage import _context

                    self.disagreed += _context.arena().contains(tensor.data_ptr()) != (found[-1] == "arena")
        self.batches += 1
        self.batches_in_arena += "arena" in found
        return batch

    def write(self, net, rank=0):
        digest = hashlib.sha256()
        for name, value in sorted(net.state_dict().items()):
            digest.update(name.encode() + value.contiguous().numpy().tobytes())
        record = {
            "losses": [loss.hex() for loss in self.losses],
            "weights": digest.hexdigest(),
            "batches": self.batches,
            "batches in the arena": self.batches_in_arena,
            "tensors": self.tensors,
            "disagreed": self.disagreed,
        }
        with open(os.path.join(self.given.out, f"{rank}.json"), "w") as file:
            json.dump(record, file)


def _where(tensor, mappings):
    name = ""
    for span, _, _, _, _, *names in mappings:
        first, last = (int(end, 16) for end in span.split("-"))
        if first <= tensor.data_ptr() < last:
            name = names[0] if names else ""
    if "memfd:ullage-arena" in name:
        return "arena"
    if "/torch_" in name:
        return "torch segment"
    return "small copy" if tensor.nbytes < COPIED_OUT_BELOW else "elsewhere"
