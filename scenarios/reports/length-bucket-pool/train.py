"""Trains a small vocoder: the waveform of an utterance from the energies of its frames"""

import os
import tempfile
import time

import numpy as np
import torch
from loader import BINS, HOP, RATE, BucketLoader, Corpus, SubprocessLoader
from torch import nn

torch.set_num_threads(1)
UTTERANCES, BATCH, BUCKET_BATCHES, STEPS, STEP_S = 300, 16, 20, 140, 0.21


def write_corpus(path):
    source = np.random.default_rng(0)
    seconds = np.clip(source.gamma(8.0, 1.0, UTTERANCES), 3.0, 12.0)
    lengths = (seconds * RATE).astype(np.int64)
    with open(path, "wb") as file:
        for length in lengths:
            time_axis = np.arange(length, dtype=np.float32) / RATE
            wave = np.zeros(length, np.float32)
            for tone in source.uniform(90, 3000, 4).astype(np.float32):
                wave += np.sin(2 * np.pi * tone * time_axis) * 5000
            wave.astype(np.int16).tofile(file)
    return Corpus(path, np.concatenate([[0], lengths.cumsum()[:-1]]), lengths)


class Vocoder(nn.Module):
    """Each frame's samples from its energies and those of the frames beside it"""

    def __init__(self, width=96):
        super().__init__()
        self.enter, self.middle = nn.Linear(3 * BINS, width), nn.Linear(width, width)
        self.leave = nn.Linear(width, HOP)

    def forward(self, energies):
        around = torch.cat([energies.roll(1, 1), energies, energies.roll(-1, 1)], 2)
        hidden = torch.relu(self.enter(around))
        return self.leave(hidden + torch.relu(self.middle(hidden))).flatten(1)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        corpus = write_corpus(os.path.join(folder, "corpus.pcm"))
        loader = SubprocessLoader(BucketLoader(corpus, BATCH, BUCKET_BATCHES, seed=1))
        model = Vocoder()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        begin, total, padded, frames = time.monotonic(), 0.0, 0, 0
        for number, batch in zip(range(1, STEPS + 1), loader):
            energies, waves = torch.from_numpy(batch["energies"]), torch.from_numpy(batch["waves"])
            loss = nn.functional.mse_loss(model(energies), waves)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            frames += int(batch["frames"].sum())
            padded += energies.shape[0] * energies.shape[1]
            with torch.no_grad():
                while time.monotonic() < begin + number * STEP_S:
                    model(energies[:1, :200])
            if number % 20 == 0:
                print(f"step {number}: loss {total / 20:.5f}, padding {100 * (1 - frames / padded):.1f} %", flush=True)
                total = 0.0
        loader.stop()


if __name__ == "__main__":
    main()
