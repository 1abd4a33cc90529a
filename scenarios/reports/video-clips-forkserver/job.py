"""Trains a classifier of video clips: a short warm-up with the main process as loader, and the rest with workers"""

import tempfile
import time

import torch
from clips import ClipDataset, write_videos
from torch import nn
from torch.utils.data import DataLoader, Subset

torch.set_num_threads(1)
VIDEOS, VIDEO_S, WARM_UP_S, STEP_S, EPOCHS = 300, 0.085, 7.0, 0.1, 2


class Classifier(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv3d(3, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv3d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool3d(1),
            nn.Flatten(),
            nn.Linear(2 * width, 4),
        )

    def forward(self, clips):
        return self.body(clips)


def train(model, optimizer, loader, seconds):
    begin = until = time.monotonic()
    for step, (clips, labels) in enumerate(loader, 1):
        until += STEP_S
        loss = nn.functional.cross_entropy(model(clips), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            while time.monotonic() < until:
                model(clips.flip(-1))
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        if until - begin > seconds:
            break


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        dataset = ClipDataset(write_videos(folder, VIDEOS), video_s=VIDEO_S)
        print(f"{len(dataset)} clips", flush=True)
        model = Classifier()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        train(model, optimizer, DataLoader(Subset(dataset, range(800)), batch_size=8), WARM_UP_S)
        for epoch in range(EPOCHS):
            loader = DataLoader(
                dataset, batch_size=8, shuffle=True, num_workers=2, multiprocessing_context="forkserver"
            )
            train(model, optimizer, loader, WARM_UP_S)
            print(f"epoch {epoch} done", flush=True)


if __name__ == "__main__":
    main()
