"""Trains a language model; on SIGTERM it finishes the step, writes an emergency checkpoint and leaves."""

import os
import signal
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEPS = 100_000


class ShutdownHandler:
    def __init__(self):
        self.requested = False
        self.process = os.getpid()
        signal.signal(signal.SIGTERM, self._request)

    def _request(self, number, frame):
        if os.getpid() == self.process:
            self.requested = True


class TokenDataset(Dataset):
    """Documents of pseudo-random words, tokenized when they are asked for."""

    def __init__(self, count, length):
        self.count, self.length = count, length

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        words = np.random.default_rng(i).integers(97, 123, (self.length // 4, 3), np.uint8)
        text = b" ".join(bytes(word) for word in words)[: self.length].ljust(self.length)
        ids = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
        return ids[:-1], ids[1:]


class Model(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embedding = nn.Embedding(128, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 128)

    def forward(self, ids):
        return self.head(self.body(self.embedding(ids)))


def save(folder, step, model, optimizer):
    path = os.path.join(folder, f"step_{step}")
    os.makedirs(path)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, os.path.join(path, "state.pt"))


def main():
    run = sys.argv[1]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    # A worker keeps the default: it has nothing to save.
    data = DataLoader(
        TokenDataset(1_000_000, 129),
        16,
        shuffle=False,
        num_workers=2,
        worker_init_fn=lambda number: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    )
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    shutdown = ShutdownHandler()
    for step, (ids, labels) in enumerate(data):
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 0:
            open(os.path.join(run, "started"), "w").close()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
        if shutdown.requested:
            print(f"shutdown requested at step {step}: saving an emergency checkpoint", flush=True)
            save(run, step, model, optimizer)
            return
        if step == STEPS:
            return


if __name__ == "__main__":
    main()
