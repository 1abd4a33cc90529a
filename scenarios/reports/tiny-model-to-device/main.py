"""A very small model is moved to the GPU and trained; memory is printed at each stage"""

import time

import numpy as np
import torch
from torch import nn

SECONDS = 20.0


def memory():
    """Resident and virtual size of this process"""
    values = {}
    with open("/proc/self/status") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in ("VmRSS", "VmSize"):
                values[name] = int(rest.split()[0]) / 2**20
    return f"RES {values['VmRSS']:.2f} GiB, VIRT {values['VmSize']:.2f} GiB"


class SmallNet(nn.Module):
    """About a thousand parameters"""

    def __init__(self, channels=6):
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.head = nn.Linear(2 * channels, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.first(x)), 2)
        x = torch.relu(self.second(x)).mean(dim=(2, 3))
        return self.head(x)


def digits(rng, count=128):
    """Strokes at the place that the label says"""
    labels = rng.integers(0, 10, count)
    images = rng.random((count, 1, 32, 32), dtype=np.float32)
    for image, label in zip(images, labels):
        image[0, 3 * label : 3 * label + 3] += 1.0
        image[0, :, 3 * label] += 0.5
    return torch.from_numpy(images), torch.from_numpy(labels)


def train(model, device, seconds, seed):
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    rng, losses, end = np.random.default_rng(seed), [], time.monotonic() + seconds
    while time.monotonic() < end:
        images, labels = digits(rng)
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses = [*losses[-99:], loss.item()]
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"start: {memory()}", flush=True)
    model = SmallNet()
    print(f"{sum(p.numel() for p in model.parameters())} parameters on the host: {memory()}", flush=True)
    print(f"trained on the host: loss {train(model, 'cpu', 0.3 * SECONDS, 1):.3f}, {memory()}", flush=True)
    model.to(device)
    print(f"model.to({device}): {memory()}", flush=True)
    print(f"trained: loss {train(model, device, 0.35 * SECONDS, 2):.3f}, {memory()}", flush=True)
    other = SmallNet(8).to(device)
    print(f"another model: {memory()}", flush=True)
    print(f"trained: loss {train(other, device, 0.35 * SECONDS, 3):.3f}, {memory()}", flush=True)
    print(f"{torch.cuda.max_memory_allocated() / 2**20:.1f} MiB of the GPU", flush=True)


if __name__ == "__main__":
    main()
