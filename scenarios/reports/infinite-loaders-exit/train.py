"""Trains a small detector's classifier for some epochs, each with a validation, and writes the results."""

import json
import os
import tempfile
import time

import torch
from build import YOLODataset, build_dataloader
from torch import nn

EPOCHS, EPOCH_SECONDS, SIZE, WORKERS = 8, 2.2, 160, 2


class Validator:
    def __init__(self, loader):
        self.dataloader = loader

    @torch.no_grad()
    def __call__(self, model):
        model.eval()
        right = seen = 0
        for images, labels in self.dataloader:
            right += int((model(images.float() / 255).argmax(1) == labels).sum())
            seen += len(labels)
        model.train()
        return right / seen


class Trainer:
    def __init__(self, folder):
        self.folder = folder
        self.model = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=4), nn.SiLU(), nn.Conv2d(16, 32, 3, stride=2), nn.SiLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.train_loader = build_dataloader(YOLODataset(1400, SIZE, True, 0), 16, WORKERS, shuffle=True)
        self.test_loader = build_dataloader(YOLODataset(320, SIZE, False, 1), 32, 2 * WORKERS, shuffle=False)
        self.validator = Validator(self.test_loader)
        self.results = []

    def train(self):
        for epoch in range(EPOCHS):
            end, losses = time.monotonic() + EPOCH_SECONDS, []
            while time.monotonic() < end:
                for images, labels in self.train_loader:
                    loss = nn.functional.cross_entropy(self.model(images.float() / 255), labels)
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                    losses.append(loss.item())
                    if time.monotonic() > end:
                        break
            self.results.append({"epoch": epoch, "loss": sum(losses) / len(losses), "accuracy": self.validator(self.model)})
            print(self.results[-1], flush=True)
        torch.save(self.model.state_dict(), os.path.join(self.folder, "last.pt"))
        with open(os.path.join(self.folder, "results.json"), "w") as file:
            json.dump(self.results, file)


class YOLO:
    def __init__(self):
        self.trainer = None

    def train(self, folder):
        self.trainer = Trainer(folder)
        self.trainer.train()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = YOLO()
    with tempfile.TemporaryDirectory() as output:
        model.train(output)
    print("results saved")
