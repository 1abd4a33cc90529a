"""Keyword spotting on clips that a process of its own augments"""

import multiprocessing
import os

import numpy as np
import torch
from torch import nn

CLIPS, SAMPLES, WORDS = 400, 2048, 8
BATCH, STEPS = 16, 20


def stretch(clip, factor):
    places = np.clip(np.arange(len(clip)) * factor, 0, len(clip) - 1)
    return np.interp(places, np.arange(len(clip)), clip)


def reverberate(clip, generator):
    """Mirrors of a room, one after the other"""
    out = clip.copy()
    for delay in generator.integers(10, 900, 120):
        out[delay:] += clip[:-delay] * (0.3 / (1 + delay / 80))
    return out / max(np.abs(out).max(), 1e-6)


def colour(clip, generator, rounds=150):
    for _ in range(rounds):
        spectrum = np.fft.rfft(clip)
        gains = 1 + 0.02 * generator.standard_normal(len(spectrum))
        clip = np.fft.irfft(spectrum * gains, len(clip))
    return clip


def augment(queue):
    generator = np.random.default_rng(7)
    time = np.arange(SAMPLES) / 8000
    for number in range(CLIPS):
        word = number % WORDS
        clip = np.sin(2 * np.pi * (200 + 150 * word) * time) * np.hanning(SAMPLES)
        clip = stretch(clip, generator.uniform(0.9, 1.1))
        clip = colour(reverberate(clip, generator), generator)
        queue.put((clip.astype(np.float32), word))
    print(f"{CLIPS} clips augmented in process {os.getpid()}", flush=True)


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 64, 32, stride=4), nn.ReLU(), nn.Conv1d(64, 64, 16, stride=4), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, WORDS),
        )  # fmt: skip

    def forward(self, clips):
        return self.layers(clips[:, None])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    queue = multiprocessing.Queue()
    augmenter = multiprocessing.Process(target=augment, args=(queue,), name="augmenter")
    augmenter.start()
    model = Spotter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, STEPS + 1):
        clips, words = zip(*(queue.get() for _ in range(BATCH)))
        clips, words = torch.from_numpy(np.stack(clips)), torch.tensor(words)
        for _ in range(12):
            loss = nn.functional.cross_entropy(model(clips), words)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 4 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    print("waiting for the augmenter", flush=True)
    augmenter.join()
    torch.save(model.state_dict(), "spotter.pt")
    print("saved", flush=True)


if __name__ == "__main__":
    main()
