"""Train a speech recognizer: utterances by length in the first epoch, then in random order"""

import queue
import random
import threading
import time

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
UTTERANCES, BATCH, STEP, WINDOW, BANDS, LETTERS = 216, 12, 160, 400, 64, 29
SHORTEST, LONGEST, MULTIPLE, RUN_S = 120, 1440, 120, 30.0


def feature_lengths():
    """Frames of each utterance, from the shortest to the longest, as a CSV that is sorted by its file size"""
    return np.linspace(SHORTEST, LONGEST, UTTERANCES).astype(int)


class ModelFeeder(threading.Thread):
    """Computes the features of the next batches ahead of training"""

    def __init__(self, capacity=3):
        super().__init__(daemon=True)
        self.queue = queue.Queue(capacity)
        self.filters = np.random.default_rng(1).random((WINDOW // 2 + 1, BANDS), np.float32)

    def features(self, number, frames):
        rng = np.random.default_rng(number)
        audio = rng.standard_normal(frames * STEP + WINDOW, np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(audio, WINDOW)[::STEP][:frames]
        return np.log1p(np.abs(np.fft.rfft(windows * np.hanning(WINDOW))).astype(np.float32) @ self.filters)

    def run(self):
        lengths, epoch = feature_lengths(), 0
        while True:
            starts = list(range(0, UTTERANCES, BATCH))
            if epoch > 0:
                random.Random(epoch).shuffle(starts)
            for start in starts:
                frames = lengths[start : start + BATCH]
                padded = -(-int(frames.max()) // MULTIPLE) * MULTIPLE
                batch = np.zeros((BATCH, BANDS, padded), np.float32)
                for row, length in enumerate(frames):
                    batch[row, :, :length] = self.features(start + row, int(length)).T
                self.queue.put((epoch, torch.from_numpy(batch), torch.from_numpy(frames)))
            epoch += 1


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv1d(channels, channels, 11, padding=5, groups=channels)
        self.pointwise = nn.Conv1d(channels, channels, 1)
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, hidden):
        return hidden + torch.relu(self.norm(self.pointwise(self.depthwise(hidden))))


class Acoustic(nn.Module):
    def __init__(self, channels=128):
        super().__init__()
        self.stem = nn.Conv1d(BANDS, channels, 1)
        self.blocks = nn.Sequential(*[Block(channels) for _ in range(6)])
        self.letters = nn.Conv1d(channels, LETTERS, 1)

    def forward(self, features):
        return self.letters(self.blocks(self.stem(features))).log_softmax(dim=1).permute(2, 0, 1)


def main():
    torch.manual_seed(7)
    model = Acoustic()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    feeder = ModelFeeder()
    feeder.start()
    begin, first, step = time.monotonic(), None, 0
    while True:
        epoch, features, frames = feeder.queue.get()
        passed = time.monotonic() - begin
        if first is None and epoch == 1:
            first = passed
        if first is not None and passed > max(RUN_S, 2.8 * first):
            break
        words = frames // 12
        targets = torch.randint(1, LETTERS, (BATCH, int(words.max())))
        loss = nn.functional.ctc_loss(model(features), targets, frames, words, zero_infinity=True)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimizer.step()
        step += 1
        if step % 6 == 0:
            print(f"epoch {epoch} batch {step} frames {features.shape[2]} loss {loss.item():.2f}", flush=True)


if __name__ == "__main__":
    main()
