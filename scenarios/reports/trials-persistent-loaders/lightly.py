"""A module, a data module and a trainer that know each other, as in larger frameworks."""

import time

import torch
from torch import nn


class Module(nn.Module):
    trainer = None

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.rate, momentum=0.9)


class DataModule:
    trainer = None

    def train_dataloader(self):
        raise NotImplementedError

    def val_dataloader(self):
        raise NotImplementedError


class FitLoop:
    def __init__(self, trainer):
        self.trainer = trainer
        self.batches = None

    def run(self, module, optimizer):
        self.batches = iter(self.trainer.train_loader)
        for images, labels in self.batches:
            loss = nn.functional.cross_entropy(module(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.monotonic() > self.trainer.end:
                return


class ValidationLoop:
    def __init__(self, trainer):
        self.trainer = trainer
        self.batches = None

    @torch.no_grad()
    def run(self, module):
        right = seen = 0
        self.batches = iter(self.trainer.val_loader)
        for images, labels in self.batches:
            right += int((module(images).argmax(1) == labels).sum())
            seen += len(labels)
        return right / seen


class Trainer:
    def __init__(self, max_epochs, seconds):
        self.max_epochs, self.end = max_epochs, time.monotonic() + seconds
        self.fit_loop, self.validation_loop = FitLoop(self), ValidationLoop(self)

    def fit(self, module, data):
        module.trainer = data.trainer = self
        self.module, self.data = module, data
        self.train_loader, self.val_loader = data.train_dataloader(), data.val_dataloader()
        optimizer = module.configure_optimizers()
        score = 0.0
        for _ in range(self.max_epochs):
            module.train()
            self.fit_loop.run(module, optimizer)
            module.eval()
            score = self.validation_loop.run(module)
        return score
