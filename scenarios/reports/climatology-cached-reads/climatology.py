"""Trains a small model of the anomalies of each variable, year by year, in several rounds over the data set"""

import os
import tempfile
import time
import zlib

import numpy as np
import torch

import lazydata

torch.set_num_threads(1)
SECONDS = 31.0
PART_S = 0.42
SHAPE = (365, 60, 72)
NAMES = ("t2m", "sst", "precip", "u10", "v10", "msl")
YEARS = (1991, 1992, 1993, 1994)


def write_years(folder):
    generator = np.random.default_rng(9)
    days = np.cos(2 * np.pi * np.arange(365) / 365).astype(np.float32)[:, None, None]
    variables = {}
    for name in NAMES:
        pattern = generator.standard_normal(SHAPE[1:]).astype(np.float32)
        noise = generator.integers(0, 4, SHAPE).astype(np.float32) / 4
        variables[name] = (SHAPE, zlib.compress((np.round(8 * days * pattern) / 8 + noise).tobytes(), 1))
    for year in YEARS:
        lazydata.write(os.path.join(folder, f"era-{year}.nc"), variables)


class Downscaler(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.GELU(), torch.nn.Conv2d(16, 1, 3, padding=1)
        )

    def forward(self, fields):
        return self.layers(fields)


def fit(model, optimizer, values, generator):
    """Steps on random days of one variable for a while; the last loss"""
    climate = torch.from_numpy(values.mean(0))
    started = time.monotonic()
    while time.monotonic() - started < PART_S:
        days = generator.integers(0, SHAPE[0], 16)
        fields = torch.from_numpy(values[days])[:, None] - climate
        coarse = torch.nn.functional.avg_pool2d(fields, 2)
        loss = torch.nn.functional.mse_loss(
            model(torch.nn.functional.interpolate(coarse, scale_factor=2.0)), fields
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    generator = np.random.default_rng(3)
    model = Downscaler()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    with tempfile.TemporaryDirectory() as folder:
        write_years(folder)
        years, rounds, started = lazydata.open_datasets(folder), 0, time.monotonic()
        while time.monotonic() - started < SECONDS:
            rounds += 1
            for year, dataset in zip(YEARS, years):
                for name in NAMES:
                    loss = fit(model, optimizer, dataset[name].values, generator)
                print(f"round {rounds}, {year}: {loss:.4f}", flush=True)
                if time.monotonic() - started > SECONDS:
                    break


if __name__ == "__main__":
    main()
