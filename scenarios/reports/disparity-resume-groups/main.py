"""Trains a network for disparity on rendered scenes, from the start or from a checkpoint"""

import argparse
import time

import torch
from sceneflow import SceneFlow
from sttr import StereoNet, parameter_groups
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
PAIRS, BATCH, STEP_S = 150, 8, 0.16


def train_one_epoch(model, optimizer, loader):
    begin, total = time.monotonic(), 0.0
    for step, (pictures, disparity) in enumerate(loader, 1):
        loss = nn.functional.smooth_l1_loss(model(pictures), disparity)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        with torch.no_grad():
            while time.monotonic() < begin + step * STEP_S:
                model.regression(torch.zeros(1, 24, 8, 8))
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--norms", choices=("frozen", "optimized"), default="frozen")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--resume")
    parser.add_argument("--checkpoint", required=True)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = StereoNet()
    optimizer = torch.optim.AdamW(parameter_groups(model, arguments.norms), weight_decay=1e-4)
    dataset, first = SceneFlow(PAIRS, show=True), 0
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=2)
    if arguments.resume:
        checkpoint = torch.load(arguments.resume, weights_only=True)
        model.load_state_dict(checkpoint["state_dict"])
        print("Pre-trained model successfully loaded.", flush=True)
        first = checkpoint["epoch"]
        optimizer.load_state_dict(checkpoint["optimizer"])
    for epoch in range(first, arguments.epochs):
        mean = train_one_epoch(model, optimizer, loader)
        print(f"epoch {epoch + 1}: loss {mean:.4f}", flush=True)
        state = {"epoch": epoch + 1, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, arguments.checkpoint)


if __name__ == "__main__":
    main()
