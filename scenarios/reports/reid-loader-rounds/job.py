"""Unsupervised re-identification: rounds of clustering, and of training on the clusters as labels"""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

from loader import DataLoaderX, IdentitySampler

torch.set_num_threads(1)
ROUNDS, ROUND_S = 24, 1.1
IMAGES, HEIGHT, WIDTH = 1200, 128, 64
BATCH, INSTANCES, CLUSTERS = 24, 4, 40


def camera_images():
    """Crops of persons: stripes of the person's colors with noise"""
    generator = np.random.default_rng(0)
    colors = generator.integers(0, 200, (60, 8, 1, 3), np.uint8)
    persons = generator.integers(0, 60, IMAGES)
    stripes = colors[persons].repeat(HEIGHT // 8, 1).repeat(WIDTH, 2)
    return stripes + generator.integers(0, 50, stripes.shape, np.uint8)


class CommDataset(Dataset):
    """The images that belong to a cluster, with its number"""

    def __init__(self, images, kept, labels, seed):
        self.images, self.kept, self.labels = images, kept, labels
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.kept)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[self.kept[index]]).permute(2, 0, 1).float().div_(255).sub_(0.5)
        if torch.rand((), generator=self.generator) < 0.5:
            image = image.flip(2)
        top = int(torch.randint(0, HEIGHT - 32, (), generator=self.generator))
        image[:, top : top + 24, 16:40] = 0
        return image, int(self.labels[index])


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 24, 5, 4, 2), nn.BatchNorm2d(24), nn.ReLU(),
            nn.Conv2d(24, 48, 3, 2, 1), nn.BatchNorm2d(48), nn.ReLU(),
            nn.AdaptiveAvgPool2d((4, 1)), nn.Flatten(),
        )
        self.classifier = nn.Linear(192, CLUSTERS)

    def forward(self, images):
        features = self.trunk(images)
        return features if not self.training else self.classifier(features)


@torch.inference_mode()
def extract(model, images):
    model.eval()
    parts = []
    for start in range(0, IMAGES, 100):
        part = torch.from_numpy(images[start : start + 100]).permute(0, 3, 1, 2).float().div_(255).sub_(0.5)
        parts.append(nn.functional.normalize(model(part)))
    return torch.cat(parts)


def cluster(features, seed, iterations=8):
    """The nearest center of each image, and which images are close enough to theirs"""
    generator = torch.Generator().manual_seed(seed)
    centers = features[torch.randperm(len(features), generator=generator)[:CLUSTERS]]
    for _ in range(iterations):
        distance, nearest = torch.cdist(features, centers).min(1)
        sums = torch.zeros_like(centers).index_add_(0, nearest, features)
        counts = torch.bincount(nearest, minlength=CLUSTERS).clamp(min=1)
        centers = sums / counts[:, None]
    kept = (distance <= distance.quantile(0.9)).nonzero()[:, 0].numpy()
    return kept, nearest.numpy()[kept]


def train(model, optimizer, loader):
    model.train()
    until, losses = time.monotonic() + ROUND_S, []
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if time.monotonic() > until:
            break
    return sum(losses) / len(losses), len(losses)


def main():
    torch.manual_seed(0)
    images, model = camera_images(), Backbone()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for number in range(ROUNDS):
        kept, labels = cluster(extract(model, images), number)
        loader = DataLoaderX(
            CommDataset(images, kept, labels, number),
            batch_size=BATCH,
            sampler=IdentitySampler(labels, INSTANCES, number),
            drop_last=True,
        )
        loss, steps = train(model, optimizer, loader)
        print(f"round {number}: {len(kept)} images, {steps} steps, loss {loss:.3f}", flush=True)


if __name__ == "__main__":
    main()
