"""Trains a small segmentation network, and computes its scores on the validation images every few seconds"""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
CLASSES, VAL_IMAGES, SIDE = 19, 40, 512
TRAIN_S, SECONDS = 2.5, 25.0


class Scenes(Dataset):
    """Blocks of colour whose class is what the colour is nearest to"""

    def __init__(self, count, side):
        self.count, self.side = count, side
        self.palette = torch.rand(CLASSES, 3, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        coarse = torch.randint(CLASSES, (16, 16), generator=generator)
        label = coarse.repeat_interleave(self.side // 16, 0).repeat_interleave(self.side // 16, 1)
        image = self.palette[label].permute(2, 0, 1)
        return image + 0.05 * torch.randn(image.shape, generator=generator), label


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 24, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, CLASSES, 1),
        )

    def forward(self, image):
        return nn.functional.interpolate(self.body(image), size=image.shape[2:], mode="bilinear")


@torch.no_grad()
def single_gpu_test(model, dataset):
    model.eval()
    results = []
    for index in range(len(dataset)):
        image, _ = dataset[index]
        results.append(model(image.unsqueeze(0)).argmax(1)[0].numpy())
    return results


def evaluate(results, dataset):
    matrix = np.zeros((CLASSES, CLASSES), dtype=np.int64)
    for index, result in enumerate(results):
        label = dataset[index][1].numpy()
        matrix += np.bincount((label * CLASSES + result).reshape(-1), minlength=CLASSES**2).reshape(CLASSES, CLASSES)
    union = matrix.sum(0) + matrix.sum(1) - np.diag(matrix)
    return float(np.mean(np.diag(matrix) / np.maximum(union, 1)))


def main():
    torch.manual_seed(0)
    model = Segmenter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    validation = Scenes(VAL_IMAGES, SIDE)
    train = iter(DataLoader(Scenes(100_000, 192), batch_size=8, num_workers=1))
    started, step = time.monotonic(), 0
    while True:
        phase = time.monotonic()
        model.train()
        while time.monotonic() - phase < TRAIN_S:
            image, label = next(train)
            loss = nn.functional.cross_entropy(model(image), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        print(f"step {step}: loss {loss.item():.3f}", flush=True)
        if time.monotonic() - started > SECONDS:
            break
        results = single_gpu_test(model, validation)
        print(f"step {step}: mIoU {evaluate(results, validation):.3f}", flush=True)
        del results


if __name__ == "__main__":
    main()
