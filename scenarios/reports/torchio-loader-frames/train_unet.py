"""Train on whole volumes: a dataset of subjects, a transform, and a small network."""

import os
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
SHAPE = (112, 128, 112)
SUBJECTS = 8


def calling_frames():
    frame = sys._getframe()
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def in_torch_loader():
    """Tell whether a torch loader asked for this image."""
    frames = calling_frames()
    return any("torch/utils/data" in f.f_code.co_filename and f.f_code.co_name == "fetch" for f in frames)


class ScalarImage:
    def __init__(self, path):
        self.path = path

    def load(self):
        data = torch.from_numpy(np.fromfile(self.path, dtype=np.int16).reshape(1, *SHAPE))
        tensor = data.float()
        if in_torch_loader():
            return tensor.contiguous()
        return tensor


class RescaleAndFlip:
    def __call__(self, subject):
        out = dict(subject)
        image = out["image"]
        low, high = image.min(), image.max()
        out["image"] = ((image - low) / (high - low)).flip(1)
        return out


class SubjectsDataset(Dataset):
    def __init__(self, paths, transform):
        self.images = [ScalarImage(p) for p in paths]
        self.transform = transform

    def __len__(self):
        return len(self.images) * 20

    def __getitem__(self, index):
        image = self.images[index % len(self.images)]
        subject = {"image": image.load(), "name": os.path.basename(image.path)}
        return self.transform(subject)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        paths = []
        for number in range(SUBJECTS):
            path = os.path.join(folder, f"sub-{number:02d}_t1.img")
            rng.integers(0, 1200, SHAPE, dtype=np.int16).tofile(path)
            paths.append(path)
        loader = DataLoader(SubjectsDataset(paths, RescaleAndFlip()), batch_size=1, shuffle=True)
        net = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 1, 1),
        )
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        for step, batch in enumerate(loader):
            volume = batch["image"]
            total = 0.0
            for part in range(3):
                patch = volume[:, :, part * 30 : part * 30 + 36, 30:90, 24:84]
                loss = nn.functional.mse_loss(net(patch), patch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            if step % 5 == 0:
                print(f"step {step} loss {total / 3:.4f}", flush=True)
            if step == 60:
                break


if __name__ == "__main__":
    main()
