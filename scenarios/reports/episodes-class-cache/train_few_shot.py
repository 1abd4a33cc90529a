"""Trains a prototypical network on episodes of random classes"""

import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
CLASSES, IMAGES, SIDE = 320, 20, 64
WAY, SHOT, QUERY = 20, 2, 2
SECONDS, EPISODE_S, EPISODES = 40.0, 0.08, 50


def write_classes(folder):
    source = np.random.default_rng(0)
    for number in range(CLASSES):
        drawn = source.integers(0, 256, (3, 8, 8)).repeat(SIDE // 8, 1).repeat(SIDE // 8, 2)
        images = drawn[None] // 2 + source.integers(0, 128, (IMAGES, 3, SIDE, SIDE))
        np.save(os.path.join(folder, f"class-{number:04d}.npy"), images.astype(np.uint8))


class ClassImages:
    """The images of each class, which are loaded when they are needed first"""

    def __init__(self, folder):
        self.folder = folder
        self.classes = sorted(os.listdir(folder))
        self.loaded = {}

    def __getitem__(self, number):
        name = self.classes[number]
        if name not in self.loaded:
            images = np.load(os.path.join(self.folder, name))
            self.loaded[name] = torch.from_numpy(images).float().div_(255.0)
        return self.loaded[name]


def episode(dataset, generator):
    """The support and query images of some classes"""
    support, query = [], []
    for number in torch.randperm(CLASSES, generator=generator)[:WAY].tolist():
        picked = torch.randperm(IMAGES, generator=generator)[:SHOT + QUERY]
        images = dataset[number][picked]
        support.append(images[:SHOT])
        query.append(images[SHOT:])
    return torch.stack(support), torch.stack(query)


class Protonet(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], 3
        for _ in range(3):
            layers += [nn.Conv2d(width, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
            width = 16
        self.encoder = nn.Sequential(*layers, nn.Flatten())

    def loss(self, support, query):
        embedded = self.encoder(torch.cat([support, query], 1).flatten(0, 1)).view(WAY, SHOT + QUERY, -1)
        prototypes = embedded[:, :SHOT].mean(1)
        distances = torch.cdist(embedded[:, SHOT:].flatten(0, 1), prototypes)
        target = torch.arange(WAY).repeat_interleave(QUERY)
        accuracy = (distances.argmin(1) == target).float().mean()
        return nn.functional.cross_entropy(-distances, target), accuracy.item()


def main():
    torch.manual_seed(0)
    model, generator = Protonet(), torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with tempfile.TemporaryDirectory() as folder:
        write_classes(folder)
        dataset = ClassImages(folder)
        started, epoch = time.monotonic(), 0
        while time.monotonic() - started < SECONDS:
            total, right, begun = 0.0, 0.0, time.monotonic()
            for _ in range(EPISODES):
                until = time.monotonic() + EPISODE_S
                support, query = episode(dataset, generator)
                while True:
                    loss, accuracy = model.loss(support, query)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    if time.monotonic() > until:
                        break
                total += loss.item()
                right += accuracy
            epoch += 1
            speed = EPISODES / (time.monotonic() - begun)
            scores = f"loss {total / EPISODES:.4f}, acc {right / EPISODES:.3f}"
            print(f"epoch {epoch}: {scores}, {speed:.1f} it/s", flush=True)


if __name__ == "__main__":
    main()
