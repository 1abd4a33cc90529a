"""Forecasting of many series; the constructor of the dataset works on copies of the table, and drops them"""

import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SERIES, LENGTH, COLUMNS = 560, 6000, 8
ENCODER, HORIZON = 96, 24
SECONDS = 30.0


def read_table():
    generator = np.random.default_rng(2)
    table = generator.standard_normal((SERIES * LENGTH, COLUMNS), dtype=np.float32)
    table[:, 0] = np.repeat(np.arange(SERIES), LENGTH)
    return table


class TimeSeriesDataset(Dataset):
    def __init__(self, table):
        groups = []
        for series in range(SERIES):
            rows = table[table[:, 0] == series].astype(np.float64)
            for column in range(1, COLUMNS):  # a normaliser of each group and column
                values = rows[:, column]
                centre, scale = np.median(values), np.subtract(*np.percentile(values, [75, 25]))
                rows[:, column] = (values - centre) / max(scale, 1e-6)
            lags = [np.roll(rows[:, 1:2], lag, axis=0) for lag in (1, 7, 24)]
            groups.append(np.concatenate([rows, *lags], axis=1))
        scaled = np.concatenate(groups)
        del groups
        order = np.lexsort((np.arange(len(scaled)), scaled[:, 0]))
        self.values = torch.from_numpy(scaled[order][:, 1:].astype(np.float32))
        starts = np.arange(SERIES)[:, None] * LENGTH + np.arange(LENGTH - ENCODER - HORIZON)
        self.starts = torch.from_numpy(starts.reshape(-1).astype(np.int32))

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        start = int(self.starts[index])
        return self.values[start : start + ENCODER], self.values[start + ENCODER : start + ENCODER + HORIZON, 0]


def main():
    torch.set_num_threads(1)
    dataset = TimeSeriesDataset(read_table())
    print(f"{len(dataset)} windows", flush=True)
    model = torch.nn.LSTM(dataset.values.shape[1], 48, batch_first=True)
    head = torch.nn.Linear(48, HORIZON)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
    sampler = torch.utils.data.RandomSampler(dataset, replacement=True, num_samples=400_000)
    loader = DataLoader(dataset, batch_size=96, sampler=sampler, num_workers=2)
    started = time.monotonic()
    for step, (history, target) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = torch.nn.functional.smooth_l1_loss(head(model(history)[0][:, -1]), target)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
        if time.monotonic() - started > SECONDS:
            break


if __name__ == "__main__":
    main()
