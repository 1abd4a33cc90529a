"""Trains a one-stage detector: mosaic and mixup at first, and for the last epochs without them"""

import time

import torch
from dataset import DetDataset, collate
from torch import nn
from torch.utils.data import DataLoader
from transforms import CachedMixUp, CachedMosaic, RandomFlip, RandomResizedCrop

torch.set_num_threads(1)
IMAGES, SIZE, BATCH, WORKERS, STAGE1_S, STAGE2_S = 640, 512, 4, 2, 24.0, 8.0


def pipelines():
    first = [CachedMosaic(SIZE, 40), RandomResizedCrop(SIZE), RandomFlip(), CachedMixUp(20)]
    return first, [RandomResizedCrop(SIZE), RandomFlip()]


class PipelineSwitchHook:
    """From the switch on, the loader's workers are new ones with the other pipeline"""

    def __init__(self, switch_s, pipeline):
        self.switch_s, self.pipeline, self.switched = switch_s, pipeline, False

    def before_train_epoch(self, runner):
        if not self.switched and runner.elapsed() >= self.switch_s:
            runner.loader.dataset.pipeline = self.pipeline
            # The persistent workers have the old pipeline
            runner.loader._iterator = None
            self.switched = True
            print(f"{runner.elapsed():.1f} s: switched the pipeline", flush=True)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for before, after, stride in ((3, 12, 4), (12, 24, 2), (24, 48, 2), (48, 48, 1)):
            layers += [nn.Conv2d(before, after, 3, stride=stride, padding=1), nn.GroupNorm(4, after), nn.SiLU()]
        self.body, self.head = nn.Sequential(*layers), nn.Conv2d(48, 1, 1)

    def loss(self, images, boxes):
        cells = self.head(self.body(images.float() / 255))[:, 0]
        target = torch.zeros_like(cells)
        for grid, one in zip(target, boxes):
            centres = ((one[:, :2] + one[:, 2:]) / 2 / SIZE * len(grid)).long().clamp(0, len(grid) - 1)
            grid[centres[:, 1], centres[:, 0]] = 1.0
        return nn.functional.binary_cross_entropy_with_logits(cells, target)


class Runner:
    def __init__(self):
        first, second = pipelines()
        self.loader = DataLoader(
            DetDataset(IMAGES, first),
            BATCH,
            shuffle=True,
            num_workers=WORKERS,
            persistent_workers=True,
            collate_fn=collate,
            drop_last=True,
        )
        self.hook = PipelineSwitchHook(STAGE1_S, second)
        self.model = Detector()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-3)
        self.begin = time.monotonic()

    def elapsed(self):
        return time.monotonic() - self.begin

    def train(self, steps_per_epoch=12):
        epoch = 0
        while self.elapsed() < STAGE1_S + STAGE2_S:
            self.hook.before_train_epoch(self)
            total = 0.0
            for step, (images, boxes) in enumerate(self.loader, 1):
                loss = self.model.loss(images, boxes)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
                if step == steps_per_epoch:
                    break
            epoch += 1
            print(f"epoch {epoch}: loss {total / steps_per_epoch:.4f}, {self.elapsed():.1f} s", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    Runner().train()
