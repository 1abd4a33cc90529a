"""Atomistic systems with their targets, as the reader of the training set leaves them"""

import random

import torch
from torch.utils.data import Dataset

ELEMENTS = (1, 6, 7, 8, 16)


def read_system(number, atoms=64, pairs=320):
    """A system: where its atoms are, which of them are near each other, and the targets of the reference calculation"""
    source = random.Random(number)
    positions = [(source.uniform(0, 12), source.uniform(0, 12), source.uniform(0, 12)) for _ in range(atoms)]
    return {
        "types": [source.choice(ELEMENTS) for _ in range(atoms)],
        "positions": positions,
        "forces": [(source.gauss(0, 1), source.gauss(0, 1), source.gauss(0, 1)) for _ in range(atoms)],
        "pairs": [(source.randrange(atoms), source.randrange(atoms)) for _ in range(pairs)],
        "energy": source.gauss(-6 * atoms, 3),
    }


class SystemsDataset(Dataset):
    def __init__(self, systems):
        self.systems = systems

    def __len__(self):
        return len(self.systems)

    def __getitem__(self, index):
        system = self.systems[index]
        return {
            "types": torch.tensor(system["types"]),
            "positions": torch.tensor(system["positions"]),
            "forces": torch.tensor(system["forces"]),
            "pairs": torch.tensor(system["pairs"]),
            "energy": torch.tensor(system["energy"]),
        }


class CollateFn:
    """Joins systems into one graph; the pairs of each start at the number of its first atom"""

    def __call__(self, samples):
        sizes = [len(sample["types"]) for sample in samples]
        starts = torch.tensor([0, *sizes]).cumsum(0)[:-1]
        batch = {key: torch.cat([sample[key] for sample in samples]) for key in ("types", "positions", "forces")}
        batch["pairs"] = torch.cat([sample["pairs"] + start for sample, start in zip(samples, starts)])
        batch["system"] = torch.repeat_interleave(torch.arange(len(samples)), torch.tensor(sizes))
        batch["energy"] = torch.stack([sample["energy"] for sample in samples])
        return batch
