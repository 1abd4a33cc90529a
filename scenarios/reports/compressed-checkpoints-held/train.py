"""Checkpoints of an embedding model are compressed in memory, and a thread writes them."""

import os
import tempfile
import threading
import time
import zlib
from collections import deque

import torch
from torch import nn

SECONDS = 28.0
ITEMS, WIDTH = 60_000, 48


class CheckpointManager:
    """Compresses on the caller's time; holds the last `max_to_keep` for a quick restore."""

    def __init__(self, folder, max_to_keep=3):
        self.folder, self.held = folder, deque(maxlen=max_to_keep)
        self.writer = None

    def save(self, step, tensors):
        packed = {name: zlib.compress(tensor.detach().numpy().data, 1) for name, tensor in tensors.items()}
        self.held.append((step, packed))
        if self.writer is not None:
            self.writer.join()
        self.writer = threading.Thread(target=self.write, args=(packed,))
        self.writer.start()
        return sum(map(len, packed.values()))

    def write(self, packed):
        for name, data in packed.items():
            with open(os.path.join(self.folder, f"{name}.zlib"), "wb") as file:
                file.write(data)

    def close(self):
        self.writer.join()


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, WIDTH)
        nn.init.zeros_(self.items.weight)
        self.tower = nn.Sequential(nn.Linear(WIDTH, 128), nn.ReLU(), nn.Linear(128, WIDTH))

    def forward(self, history, target):
        return (self.tower(self.items(history).mean(1)) * (self.items(target) + 0.1)).sum(1)


def state(model, optimizer):
    tensors = {"items": model.items.weight}
    for name, value in optimizer.state[model.items.weight].items():
        if value.ndim:
            tensors[name] = value
    return tensors


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Recommender()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    end, step = time.monotonic() + SECONDS, 0
    with tempfile.TemporaryDirectory() as folder:
        manager = CheckpointManager(folder)
        while time.monotonic() < end:
            catalogue = min(ITEMS, 3000 + 900 * step)
            history, target = torch.randint(catalogue, (256, 12)), torch.randint(catalogue, (256,))
            score = model(history, target)
            loss = nn.functional.binary_cross_entropy_with_logits(score, (target % 2).float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 15 == 0:
                size = manager.save(step, state(model, optimizer))
                print(f"step {step} loss {loss.item():.4f} checkpoint {size >> 20} MiB", flush=True)
            step += 1
        manager.close()


if __name__ == "__main__":
    main()
