"""Trains a single shot detector for a number of iterations"""

import argparse
import time

import torch
from data import Detections, detection_collate
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
IMAGES, SIDE, CLASSES, ITERATION_S = 4000, 160, 20, 0.065


class SSD(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.base = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=4, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, 32, 3, stride=4, padding=1),
            nn.ReLU(),
        )
        self.loc, self.conf = nn.Conv2d(32, 4, 3, padding=1), nn.Conv2d(32, CLASSES + 1, 3, padding=1)

    def forward(self, images):
        features = self.base(images)
        return self.loc(features).flatten(2).transpose(1, 2), self.conf(features).flatten(2).transpose(1, 2)


class MultiBoxLoss(nn.Module):
    def forward(self, loc, conf, targets):
        wanted = torch.full(conf.shape[:2], CLASSES)
        boxes = torch.zeros_like(loc)
        side = int(conf.shape[1] ** 0.5)
        for number, found in enumerate(targets):
            centre = ((found[:, :2] + found[:, 2:4]) / 2 * (side - 1)).round().long()
            places = centre[:, 1] * side + centre[:, 0]
            wanted[number, places] = found[:, 4].long()
            boxes[number, places] = found[:, :4]
        hits = wanted < CLASSES
        return nn.functional.smooth_l1_loss(loc[hits], boxes[hits]) + nn.functional.cross_entropy(
            conf.flatten(0, 1), wanted.flatten()
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--iterations", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    dataset = Detections(IMAGES, SIDE, CLASSES)
    net, criterion = SSD(), MultiBoxLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
    loader = DataLoader(
        dataset, args.batch_size, num_workers=2, shuffle=True, collate_fn=detection_collate
    )
    print(f"Loaded {len(dataset)} images, training SSD on them", flush=True)
    batch_iterator, begin = iter(loader), time.monotonic()
    for iteration in range(args.iterations):
        images, targets = next(batch_iterator)
        t0 = time.monotonic()
        loss = criterion(*net(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        t1 = time.monotonic()
        with torch.no_grad():
            while time.monotonic() < begin + (iteration + 1) * ITERATION_S:
                net.base(images[:2])
        if iteration % 10 == 0:
            print(f"timer: {t1 - t0:.4f} sec.\niter {iteration} || Loss: {loss.item():.4f} ||", flush=True)


if __name__ == "__main__":
    main()
