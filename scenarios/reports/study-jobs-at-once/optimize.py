"""Tunes a network for a table of machine readings"""

import sys
import threading
import time

import torch
from torch import nn

from study import Study

torch.set_num_threads(1)
SECONDS, TRIAL_S, ROWS, COLUMNS = 38.0, 2.4, 300_000, 48


class Objective:
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.table = torch.randn((ROWS, COLUMNS), generator=generator)
        self.target = (self.table[:, :8].sum(dim=1) > 0.0).float()
        self.turn = threading.Lock()

    def resample(self, number):
        """A bootstrap sample of the table, for one trial at a time"""
        with self.turn:
            generator = torch.Generator().manual_seed(number)
            rows = torch.randint(0, ROWS, (ROWS,), generator=generator)
            return self.table[rows], self.target[rows]

    def __call__(self, trial):
        torch.set_num_threads(1)
        table, target = self.resample(trial.number)
        width = trial.suggest_categorical("width", [32, 64, 96])
        model = nn.Sequential(nn.Linear(COLUMNS, width), nn.ReLU(), nn.Linear(width, 1))
        optimizer = torch.optim.SGD(model.parameters(), trial.suggest_float("lr", 0.01, 0.3))
        end, step, total = time.monotonic() + TRIAL_S, 0, 0.0
        while step == 0 or time.monotonic() < end:
            start = 2_048 * step % (ROWS - 2_048)
            loss = nn.functional.binary_cross_entropy_with_logits(
                model(table[start : start + 2_048])[:, 0], target[start : start + 2_048]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step, total = step + 1, total + loss.item()
        return total / step


def main():
    study = Study(seed=11)
    study.optimize(Objective(), timeout=SECONDS, n_jobs=int(sys.argv[1]))
    number, value, params = min(study.values, key=lambda one: one[1])
    print(f"best trial {number}: {value:.4f} with {params}", flush=True)


if __name__ == "__main__":
    main()
