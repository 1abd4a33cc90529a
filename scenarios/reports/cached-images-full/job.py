"""The same cache for a dataset that it holds whole: filled in the first seconds, and used from then on."""

import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
IMAGES = int(sys.argv[2]) if len(sys.argv) > 2 else 800


class LoadImagesAndLabels(Dataset):
    def __init__(self, n):
        self.img_files = [f"images/{i:06d}.jpg" for i in range(n)]
        self.imgs = [None] * n
        self.img_hw0 = [None] * n

    def __len__(self):
        return len(self.img_files)

    def __getitem__(self, index):
        img = self.imgs[index]
        if img is None:
            img = np.random.default_rng(index).integers(0, 255, (320, 320, 3), dtype=np.uint8)
            self.imgs[index], self.img_hw0[index] = img, (320, 320)
        return torch.from_numpy(img[::4, ::4]).permute(2, 0, 1).float() / 255, index


def main():
    dataset = LoadImagesAndLabels(IMAGES)
    loader = DataLoader(dataset, batch_size=4, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.Flatten(), torch.nn.LazyLinear(4))
    model(torch.zeros(1, 3, 80, 80))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for images, _ in loader:
            optimizer.zero_grad()
            model(images).square().mean().backward()
            optimizer.step()
            time.sleep(0.01)
            if time.monotonic() > end:
                break


torch.set_num_threads(1)
main()
