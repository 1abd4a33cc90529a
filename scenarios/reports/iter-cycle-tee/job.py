"""A model for DNA sequences is trained from an endless iterator, which tees the loader's batches to repeat them."""

import itertools

import numpy as np
import torch

STEPS = 190
WINDOW = 1000


class SeqDataset(torch.utils.data.Dataset):
    """One-hot encoded windows of a genome and their accessibility."""

    def __init__(self, length=24_000):
        self.genome = np.random.default_rng(0).integers(0, 4, 3_000_000, np.uint8)
        self.starts = np.random.default_rng(1).integers(0, len(self.genome) - WINDOW, length)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        window = self.genome[self.starts[index] : self.starts[index] + WINDOW]
        inputs = np.eye(4, dtype=np.float32)[window].T
        return {"inputs": inputs, "targets": np.float32((window == 2).mean())}

    def batch_iter(self, batch_size, num_workers):
        return torch.utils.data.DataLoader(self, batch_size, shuffle=True, num_workers=num_workers)

    def train_iter(self, batch_size, num_workers):
        return ((batch["inputs"], batch["targets"]) for batch in iter_cycle(self.batch_iter(batch_size, num_workers)))


def iter_cycle(loader):
    again = iter(loader)
    while True:
        current, again = itertools.tee(again)
        yield from current


def fit_generator(model, batches, steps):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step in range(steps):
        inputs, targets = next(batches)
        loss = torch.nn.functional.mse_loss(model(inputs)[:, 0], targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [torch.nn.Conv1d(4, 24, 15), torch.nn.ReLU(), torch.nn.MaxPool1d(8), torch.nn.Conv1d(24, 16, 9)]
    model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten(), torch.nn.Linear(16, 1))
    fit_generator(model, SeqDataset().train_iter(128, 2), STEPS)


if __name__ == "__main__":
    main()
