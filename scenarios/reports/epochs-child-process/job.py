"""Trains a detector's backbone: each epoch, with its evaluation, runs in a process of its own"""

import json
import multiprocessing
import os
import tempfile
import time

import torch
from dataset import CachedImages, write_images
from torch import nn

torch.set_num_threads(1)
IMAGES, BATCH, EPOCHS, STEP_S = 1000, 8, 8, 0.022


class Backbone(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=4),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(8 * width, 5),
        )

    def forward(self, images):
        return self.body(images)


def run_train_and_eval(folder, epoch):
    torch.manual_seed(epoch)
    model = Backbone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    latest = os.path.join(folder, "model.ckpt")
    if os.path.exists(latest):
        state = torch.load(latest)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    images, until = CachedImages(folder), time.monotonic()
    for batch, labels in images.batches(BATCH, torch.randperm(len(images))):
        until += STEP_S
        loss = nn.functional.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            while time.monotonic() < until:
                model(batch.flip(-1))
    right = 0
    with torch.no_grad():
        for batch, labels in images.batches(5 * BATCH, torch.arange(len(images))):
            right += (model(batch).argmax(1) == labels).sum().item()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, latest)
    with open(os.path.join(folder, "results.json"), "a") as file:
        print(json.dumps({"epoch": epoch, "loss": loss.item(), "right": right / len(images)}), file=file)


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_images(folder, IMAGES)
        for epoch in range(1, EPOCHS + 1):
            process = multiprocessing.Process(target=run_train_and_eval, args=(folder, epoch))
            process.start()
            process.join()
            if process.exitcode:
                raise RuntimeError(f"epoch {epoch} ended with {process.exitcode}")
            with open(os.path.join(folder, "results.json")) as file:
                print(file.readlines()[-1].strip(), flush=True)


if __name__ == "__main__":
    main()
