"""Fine tuning of an image classifier with a head of its own"""

import argparse

import numpy as np
import torch
from learner import Callback, Learner, Recorder
from torch import nn
from torch.utils.data import DataLoader, Dataset

IMAGES, CLASSES, SIDE = 4769, 12, 64


class Images(Dataset):
    def __init__(self, count, train):
        self.count, self.train = count, train

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = np.random.default_rng(index)
        label = index % CLASSES
        image = generator.integers(0, 200, (SIDE, SIDE, 3), dtype=np.uint8) // 2 + np.uint8(label * 8)
        if self.train and generator.random() < 0.5:
            image = image[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).float() / 255.0, label


def create_cnn():
    body = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
    )  # fmt: skip
    head = nn.Sequential(
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.BatchNorm1d(128), nn.Dropout(0.25),
        nn.Linear(128, 256), nn.ReLU(), nn.BatchNorm1d(256), nn.Dropout(0.5), nn.Linear(256, CLASSES),
    )  # fmt: skip
    return nn.Sequential(body, head)


class OneCycle(Callback):
    def __init__(self, steps, maximum=3e-3):
        self.steps, self.maximum = steps, maximum

    def on_batch_begin(self, learner):
        place = min(learner.iteration / self.steps, 1.0)
        factor = place / 0.3 if place < 0.3 else (1 - place) / 0.7
        for group in learner.optimizer.param_groups:
            group["lr"] = max(self.maximum * factor, 1e-6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train = DataLoader(Images(IMAGES, True), arguments.batch_size, shuffle=True, num_workers=2)
    valid = DataLoader(Images(640, False), 64, num_workers=2)
    callbacks = [Recorder(every=20), OneCycle(arguments.epochs * len(train))]
    Learner(create_cnn(), train, valid, callbacks).fit(arguments.epochs)


if __name__ == "__main__":
    main()
