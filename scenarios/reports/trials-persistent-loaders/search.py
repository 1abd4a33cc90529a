"""Searches for a learning rate and a width: each trial trains for two epochs."""

import os
import random

import numpy as np
import torch
from lightly import DataModule, Module, Trainer
from torch import nn
from torch.utils.data import DataLoader, Dataset

TRIALS = 9


class Scans(Dataset):
    """Each process reads its part of the scans when it first needs one, and holds it."""

    def __init__(self, count, seed):
        self.count, self.seed, self.volume = count, seed, None

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.volume is None:
            self.volume = np.random.default_rng(self.seed).standard_normal((96, 160, 160), np.float32)
        rng = np.random.default_rng((self.seed, i))
        z, y, x = rng.integers(0, 96), rng.integers(0, 112), rng.integers(0, 112)
        patch = self.volume[z, y : y + 48, x : x + 48] + rng.normal(0, 0.1, (48, 48)).astype(np.float32)
        return torch.from_numpy(patch)[None], i % 4


class ScanData(DataModule):
    def __init__(self, batch_size):
        self.batch_size = batch_size

    def loader(self, count, seed, shuffle):
        dataset = Scans(count, seed)
        return DataLoader(dataset, self.batch_size, shuffle, num_workers=2, persistent_workers=True)

    def train_dataloader(self):
        return self.loader(1600, 1, True)

    def val_dataloader(self):
        return self.loader(300, 2, False)


class Classifier(Module):
    def __init__(self, width, rate):
        super().__init__()
        self.rate = rate
        self.layers = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2), nn.ReLU(), nn.Conv2d(width, width, 3, stride=2), nn.ReLU()
        )
        self.head = nn.Linear(width, 4)

    def forward(self, images):
        return self.head(self.layers(images).mean((2, 3)))


class Trial:
    def __init__(self, number, choose):
        self.number = number
        self.width, self.rate = choose.choice([16, 24, 32]), 10 ** choose.uniform(-3, -1)
        self.batch_size = choose.choice([16, 32])
        self.value, self.trainer = 0.0, None


def objective(trial):
    trial.trainer = Trainer(max_epochs=2, seconds=6.0)
    return trial.trainer.fit(Classifier(trial.width, trial.rate), ScanData(trial.batch_size))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    choose = random.Random(0)
    study = []
    for number in range(TRIALS):
        trial = Trial(number, choose)
        trial.value = objective(trial)
        study.append(trial)
        print(f"trial {number}: {trial.value:.3f} with width {trial.width}, rate {trial.rate:.4f}", flush=True)
    best = max(study, key=lambda trial: trial.value)
    torch.save(best.trainer.module.state_dict(), os.devnull)
    print(f"best: trial {best.number}", flush=True)


if __name__ == "__main__":
    main()
