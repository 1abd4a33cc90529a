"""Super-resolution of several views; one scene of the set is not square, and its batch cannot be stacked."""

import argparse
import os

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SIZE = 32


class ImagesetDataset(Dataset):
    def __init__(self, scenes, views=24):
        self.scenes = scenes
        self.views = views
        self.odd = scenes - 5

    def __len__(self):
        return self.scenes

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        height, width = (SIZE, 2 * SIZE) if index == self.odd else (SIZE, SIZE)
        lrs = rng.normal(size=(self.views, height, width)).astype(np.float32)
        hr = np.kron(lrs.mean(0), np.ones((3, 3), np.float32))
        return {"lr": torch.from_numpy(lrs), "hr": torch.from_numpy(hr), "name": f"imgset{index:04}"}


class collateFunction:
    def __init__(self, min_L=24):
        self.min_L = min_L

    def __call__(self, batch):
        lr_batch, hr_batch, names = [], [], []
        for imageset in batch:
            lr_batch.append(imageset["lr"][: self.min_L])
            hr_batch.append(imageset["hr"])
            names.append(imageset["name"])
        padded_lr_batch = torch.stack(lr_batch, dim=0)
        return padded_lr_batch, torch.stack(hr_batch, dim=0), names


class Fusion(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = torch.nn.Conv2d(1, 24, 3, padding=1)
        self.residue = torch.nn.Conv2d(24, 24, 3, padding=1)
        self.decode = torch.nn.ConvTranspose2d(24, 1, 3, stride=3)

    def forward(self, lrs):
        b, views, h, w = lrs.shape
        hidden = torch.relu(self.encode(lrs.reshape(b * views, 1, h, w)))
        hidden = hidden + torch.relu(self.residue(hidden))
        return self.decode(hidden.view(b, views, -1, h, w).mean(1))[:, 0]


def train(args):
    loader = DataLoader(ImagesetDataset(360), batch_size=8, num_workers=2, collate_fn=collateFunction())
    fusion_model = Fusion()
    optimizer = torch.optim.Adam(fusion_model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for step, (lrs, hrs, names) in enumerate(loader):
            loss = (fusion_model(lrs) - hrs).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 0:
                print(os.getpid(), epoch, names[0], loss.item(), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=400)
    train(parser.parse_args())
