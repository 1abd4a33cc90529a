"""Trains a ranker on rows that are taken at random from a table of many fragments"""

import tempfile
import time

import numpy as np
import torch
from torch import nn

from fragments import COLUMNS, ROWS, Table, write_fragments

torch.set_num_threads(1)
FRAGMENTS, PER_STEP, ROWS_EACH = 840, 3, 8
STEP_S = 0.08


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(COLUMNS, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1)
        )

    def forward(self, rows):
        return self.layers(rows).squeeze(1)


def batches(table, generator):
    """Rows from a few fragments at a time, which come in random order"""
    order = generator.permutation(len(table.fragments))
    for start in range(0, len(order), PER_STEP):
        taken = []
        for fragment in order[start : start + PER_STEP]:
            rows = generator.choice(ROWS, ROWS_EACH, replace=False)
            taken.append(table.take(int(fragment), rows.tolist()))
        yield torch.from_numpy(np.concatenate(taken))


def main():
    torch.manual_seed(0)
    generator = np.random.default_rng(1)
    ranker = Ranker()
    optimizer = torch.optim.AdamW(ranker.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        write_fragments(folder, FRAGMENTS)
        table = Table(folder)
        print(f"{len(table.fragments)} fragments", flush=True)
        for step, rows in enumerate(batches(table, generator)):
            until = time.monotonic() + STEP_S
            target = torch.tanh(rows[:, :8].sum(1))
            while True:
                loss = nn.functional.mse_loss(ranker(rows), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if time.monotonic() > until:
                    break
            if step % 25 == 0:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
