"""Trains a network that finds particles in tomograms, and validates it on whole ones"""

import time

import numpy as np
import torch
from torch import nn

SECONDS = 23.0
CLASSES, TOMOGRAM, PATCH, WINDOW = 6, (96, 192, 192), 32, 48
STEPS, EVERY = 4, 8


def tomograms(count):
    generator = np.random.default_rng(5)
    found = []
    for _ in range(count):
        volume = generator.standard_normal(TOMOGRAM, dtype=np.float32)
        labels = np.zeros(TOMOGRAM, dtype=np.uint8)
        for number in range(80):
            centre = [generator.integers(4, side - 4) for side in TOMOGRAM]
            where = tuple(slice(c - 3, c + 3) for c in centre)
            labels[where] = 1 + number % (CLASSES - 1)
            volume[where] += 0.6 * (1 + number % (CLASSES - 1))
        found.append((torch.from_numpy(volume), torch.from_numpy(labels)))
    return found


class Network(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv3d(1, 12, 3, padding=1), nn.ReLU(),
            nn.Conv3d(12, 12, 3, padding=1), nn.ReLU(),
            nn.Conv3d(12, CLASSES, 1),
        )


def patches(pairs, generator, count):
    for _ in range(count):
        volumes, labels = [], []
        for _ in range(2):
            volume, label = pairs[generator.integers(len(pairs))]
            z, y, x = (int(generator.integers(side - PATCH)) for side in TOMOGRAM)
            where = (slice(z, z + PATCH), slice(y, y + PATCH), slice(x, x + PATCH))
            volumes.append(volume[where])
            labels.append(label[where])
        yield torch.stack(volumes)[:, None], torch.stack(labels).long()


def sliding_window(model, volume):
    """The mean of the logits of all windows at each voxel"""
    logits = torch.zeros(CLASSES, *volume.shape)
    weight = torch.zeros(1, *volume.shape)
    for z in range(0, volume.shape[0], WINDOW):
        for y in range(0, volume.shape[1], WINDOW):
            for x in range(0, volume.shape[2], WINDOW):
                where = (slice(None), slice(z, z + WINDOW), slice(y, y + WINDOW), slice(x, x + WINDOW))
                logits[where] += model(volume[where[1:]][None, None])[0]
                weight[where] += 1
    return logits / weight


@torch.no_grad()
def validate(model, pairs):
    model.eval()
    scores = []
    for volume, labels in pairs:
        prediction = sliding_window(model, volume).softmax(0).argmax(0)
        for number in range(1, CLASSES):
            hit, truth = prediction == number, labels == number
            scores.append(float(2 * (hit & truth).sum() / (hit.sum() + truth.sum()).clamp(min=1)))
    model.train()
    return sum(scores) / len(scores)


def train_epoch(model, optimizer, pairs, generator):
    total = 0.0
    for volumes, labels in patches(pairs, generator, STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(volumes), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / STEPS


def main():
    torch.set_num_threads(2)
    torch.manual_seed(0)
    training, validation = tomograms(2), tomograms(1)
    model, generator = Network(), np.random.default_rng(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    started, epoch = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        for _ in range(EVERY):
            epoch += 1
            loss = train_epoch(model, optimizer, training, generator)
        score = validate(model, validation)
        print(f"epoch {epoch}: loss {loss:.3f}, mean dice {score:.3f}", flush=True)
    for _ in range(EVERY):
        train_epoch(model, optimizer, training, generator)


if __name__ == "__main__":
    main()
