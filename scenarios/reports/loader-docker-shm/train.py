"""Semantic segmentation of street scenes: epochs at low resolution first, then at that of the images."""

import argparse

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SCENES = 320


class CamVid(Dataset):
    def __init__(self, side):
        self.side = side

    def __len__(self):
        return SCENES

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        coarse = rng.random((3, 12, 12), np.float32)
        image = np.kron(coarse, np.ones((self.side // 12, self.side // 12), np.float32))
        mask = (image.mean(0) > 0.5).astype(np.float32)
        return image, mask[None]


class Unet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.down = torch.nn.Conv2d(3, 8, 3, stride=4, padding=1)
        self.middle = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.up = torch.nn.ConvTranspose2d(8, 1, 4, stride=4)

    def forward(self, x):
        x = torch.relu(self.down(x))
        return self.up(torch.relu(self.middle(x)))


def epoch(model, optimizer, loader, number):
    for step, (image, mask) in enumerate(loader):
        logits = model(image)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"epoch {number} train {step}/{len(loader)} loss {loss.item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--resize-until", type=int)
    args = parser.parse_args()
    model = Unet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for number in range(args.epochs):
        side = 144 if number < args.resize_until else 528
        loader = DataLoader(CamVid(side), batch_size=8, shuffle=True, num_workers=4)
        epoch(model, optimizer, loader, number)


if __name__ == "__main__":
    main()
