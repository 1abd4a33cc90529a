"""Trains a detector's first stage, an epoch at a time: each epoch takes as many batches as it is told."""

import time

import torch
from build import build_detection_train_loader
from torch import nn

SECONDS = 28.0
ITERATIONS_PER_EPOCH = (90, 100_000)


def voc_like_records(count):
    """Three of four pictures are wider than high."""
    records = []
    for n in range(count):
        wide = n % 4 != 3
        records.append({"id": n, "width": 240 if wide else 176, "height": 176 if wide else 240})
    return records


class Backbone(nn.Module):
    def __init__(self, classes=20):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 7, stride=2, padding=3), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
        self.head = nn.Linear(32 * 16, classes)

    def forward(self, images):
        rows = [self.body(self.stem(image[None].float() / 255)).flatten(1) for image in images]
        return self.head(torch.cat(rows))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = build_detection_train_loader(voc_like_records(4000), images_per_batch=2)
    model = Backbone()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    end = time.monotonic() + SECONDS
    for epoch, iterations in enumerate(ITERATIONS_PER_EPOCH):
        batches = iter(loader)
        for iteration in range(iterations):
            batch = next(batches)
            labels = torch.tensor([example["label"] for example in batch])
            loss = nn.functional.cross_entropy(model([example["image"] for example in batch]), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if iteration % 50 == 0:
                print(f"epoch {epoch} iteration {iteration} loss {loss.item():.3f}", flush=True)
            if time.monotonic() > end:
                return


if __name__ == "__main__":
    main()
