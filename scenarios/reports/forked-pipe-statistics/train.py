"""Trains on a stream of spectra; another reader of the same stream keeps the statistics for the normalisation"""

import time

import numpy as np
import torch

from datapipes import IterableWrapper

torch.set_num_threads(1)
LENGTH, BATCH, STEP_S = 2048, 16, 0.12
WARM_UP, REFRESH_EVERY, SAMPLES = 160, 40, 12_000


def spectra():
    source = np.random.default_rng(0)
    for _ in range(SAMPLES):
        position = source.random() * LENGTH
        signal = np.exp(-(((np.arange(LENGTH) - position) / 40) ** 2)) * 5
        yield signal.astype(np.float32) + source.standard_normal(LENGTH, dtype=np.float32), position / LENGTH


class Statistics:
    """Running mean and variance of the spectra, from batches of their own"""

    def __init__(self, pipe):
        self.batches = iter(pipe)
        self.count, self.mean, self.square = 0, torch.zeros(LENGTH), torch.zeros(LENGTH)

    def refresh(self, batches):
        for _ in range(batches):
            for spectrum, _ in next(self.batches):
                self.count += 1
                self.mean += (torch.from_numpy(spectrum) - self.mean) / self.count
                self.square += (torch.from_numpy(spectrum) ** 2 - self.square) / self.count

    def normalise(self, spectra):
        return (spectra - self.mean) / (self.square - self.mean**2).clamp_min(1e-4).sqrt()


def main():
    torch.manual_seed(0)
    samples, described = IterableWrapper(spectra).fork(2)
    statistics = Statistics(described.batch(BATCH))
    statistics.refresh(2)
    model = torch.nn.Sequential(
        torch.nn.Conv1d(1, 8, 31, stride=4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 505, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step, batch in enumerate(samples.batch(BATCH)):
        until = time.monotonic() + STEP_S
        inputs = statistics.normalise(torch.from_numpy(np.stack([spectrum for spectrum, _ in batch])))
        targets = torch.tensor([[position] for _, position in batch])
        while True:
            loss = torch.nn.functional.mse_loss(model(inputs[:, None]), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.monotonic() > until:
                break
        # Once the first steps are over, the statistics need not follow each batch.
        if step < WARM_UP:
            statistics.refresh(1)
        elif step % REFRESH_EVERY == 0:
            statistics.refresh(1)
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.5f}, statistics of {statistics.count}", flush=True)


if __name__ == "__main__":
    main()
