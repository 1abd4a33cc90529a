"""A run of the scaling ladder: trains a small language model for a number of steps"""

import time

import torch
from loader import DataLoader, TokenStore
from torch import nn

torch.set_num_threads(1)
LENGTH, BATCH, WORDS, WIDTH = 1024, 56, 4096, 48
BUFFERED, PREFETCH, STEPS, STEP_S = 512, 16, 300, 0.1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.mix = nn.Conv1d(WIDTH, WIDTH, 4)
        self.head = nn.Linear(WIDTH, 256)

    def forward(self, tokens):
        hidden = nn.functional.pad(self.words(tokens).transpose(1, 2), (3, 0))
        return self.head(nn.functional.gelu(self.mix(hidden)).transpose(1, 2))


def step_loss(model, batch, rows):
    tokens = torch.from_numpy(batch["tokens"][rows]).long()
    weights = torch.from_numpy(batch["loss_weights"][rows])
    logits = model(tokens[:, :-1])
    losses = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten() % 256, reduction="none")
    return (losses * weights[:, 1:].flatten()).mean()


def main():
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(TokenStore(200_000, LENGTH, WORDS), BATCH, BUFFERED, PREFETCH)
    iterator, begin = iter(loader), time.monotonic()
    for step in range(1, STEPS + 1):
        batch, row = next(iterator), 0
        optimizer.zero_grad()
        while row == 0 or (row < BATCH and time.monotonic() < begin + step * STEP_S):
            loss = step_loss(model, batch, slice(row, row + 2))
            loss.backward()
            row += 2
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step}: loss {loss.item():.3f}, {iterator.batches.qsize()} batches wait", flush=True)
    iterator.stop()


if __name__ == "__main__":
    main()
