"""Trains a small detector; validates after each epoch, with twice the batch and twice the workers"""

import argparse
import time

import torch
from build import YOLODataset, build_dataloader
from torch import nn

torch.set_num_threads(1)
TRAIN_IMAGES, VAL_IMAGES, PART = 112, 128, 4


class Detector(nn.Module):
    """Says for each cell of a grid whether a box has its centre there"""

    def __init__(self):
        super().__init__()
        layers = []
        for before, after, stride in ((3, 8, 4), (8, 16, 2), (16, 64, 2), *[(64, 64, 1)] * 4):
            layers += [nn.Conv2d(before, after, 3, stride=stride, padding=1), nn.GroupNorm(4, after), nn.SiLU()]
        self.model = nn.Sequential(*layers, nn.Conv2d(64, 1, 1))

    def losses(self, batch):
        """The loss of some images after the other, as a share of the batch's"""
        images = batch["img"].split(PART)
        for number, img in enumerate(images):
            cells = self.model(img.float() / 255)[:, 0]
            target = torch.zeros_like(cells)
            here = batch["batch_idx"] // PART == number
            boxes, index = batch["bboxes"][here], batch["batch_idx"][here] % PART
            columns = (boxes[:, 0] * cells.shape[2]).long().clamp(0, cells.shape[2] - 1)
            rows = (boxes[:, 1] * cells.shape[1]).long().clamp(0, cells.shape[1] - 1)
            target[index, rows, columns] = 1.0
            yield nn.functional.binary_cross_entropy_with_logits(cells, target) / len(images)


class DetectionTrainer:
    def __init__(self, args):
        self.args, self.model = args, Detector()
        train = YOLODataset(TRAIN_IMAGES, args.imgsz, augment=True, seed=0)
        val = YOLODataset(VAL_IMAGES, args.imgsz, augment=False, seed=10_000)
        self.train_loader = build_dataloader(train, args.batch, args.workers, shuffle=True)
        self.test_loader = build_dataloader(val, 2 * args.batch, 2 * args.workers, shuffle=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)

    def train(self):
        for epoch in range(1, self.args.epochs + 1):
            begin, total = time.monotonic(), 0.0
            self.model.train()
            for batch in self.train_loader:
                self.optimizer.zero_grad()
                for loss in self.model.losses(batch):
                    loss.backward()
                    total += loss.item()
                self.optimizer.step()
            print(
                f"{epoch}/{self.args.epochs} imgsz {self.args.imgsz}: train {total / len(self.train_loader):.4f}, "
                f"val {self.validate():.4f}, {time.monotonic() - begin:.1f} s",
                flush=True,
            )

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            total = sum(loss.item() for batch in self.test_loader for loss in self.model.losses(batch))
        return total / len(self.test_loader)


def main():
    parser = argparse.ArgumentParser()
    for name in ("imgsz", "batch", "workers", "epochs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    torch.manual_seed(0)
    DetectionTrainer(parser.parse_args()).train()


if __name__ == "__main__":
    main()
