"""Trains a tile classifier; the loop reloads its loaders at every epoch, so that they can sample other slides."""

import os
import sys

import torch
from slides import SlideData, write_slide
from torch import nn

EPOCHS, SLIDES = 120, 10


class TileNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=2, padding=2),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width * 2, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(width * 2, 2),
        )

    def forward(self, tiles):
        return self.layers(tiles)


def fit(model, data):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        model.train()
        for tiles, labels in data.train_dataloader():
            loss = nn.functional.cross_entropy(model(tiles), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        right = seen = 0
        with torch.no_grad():
            for tiles, labels in data.val_dataloader():
                right += int((model(tiles).argmax(1) == labels).sum())
                seen += len(labels)
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {right / seen:.3f}", flush=True)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    paths = [os.path.join(sys.argv[1], f"slide-{n}.wsi") for n in range(SLIDES)]
    for seed, path in enumerate(paths):
        write_slide(path, seed)
    fit(TileNet(), SlideData(paths, batch_size=32))


if __name__ == "__main__":
    main()
