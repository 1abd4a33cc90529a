"""Train an action classifier on sequences that a pipeline reads from many short videos."""

import os
import queue
import random
import sys
import threading
import zlib

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
VIDEOS, FRAMES, SIZE, LENGTH, CLASSES = 500, 12, 96, 8, 10


def write_videos(folder):
    """Write the training split: each video a row of compressed frames."""
    rng = np.random.default_rng(0)
    paths = []
    for number in range(VIDEOS):
        path = os.path.join(folder, f"clip_{number:04d}.vid")
        base = rng.integers(0, 64, (SIZE, SIZE, 3), dtype=np.uint8)
        with open(path, "wb") as file:
            for frame in range(FRAMES):
                data = zlib.compress((base + frame).tobytes(), 1)
                file.write(len(data).to_bytes(4, "little") + data)
        paths.append(path)
    return paths


class OpenVideo:
    """A container that is open: its file, its index and the decoder's frame pool."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.index = []
        while head := self.file.read(4):
            size = int.from_bytes(head, "little")
            self.index.append((self.file.tell(), size))
            self.file.seek(size, 1)
        self.pool = np.zeros((FRAMES * 4, SIZE, SIZE, 3), dtype=np.uint8)
        self.pool[:] = 16

    def decode(self, start, count):
        for slot, (offset, size) in enumerate(self.index[start : start + count]):
            self.file.seek(offset)
            frame = np.frombuffer(zlib.decompress(self.file.read(size)), dtype=np.uint8)
            self.pool[slot] = frame.reshape(SIZE, SIZE, 3)
        return self.pool[:count].copy()


class VideoLoader:
    """Gives sequences out of all videos, in random order."""

    def __init__(self, paths):
        self.paths = paths
        self.open_files = {}
        self.order = [(p, s) for p in range(len(paths)) for s in (0, 4)]
        random.Random(0).shuffle(self.order)

    def get_or_open(self, path):
        if path not in self.open_files:
            try:
                self.open_files[path] = OpenVideo(path)
            except OSError as error:
                raise RuntimeError(f"Could not open file: {path} because of {error.strerror}") from error
        return self.open_files[path]

    def __iter__(self):
        for number, start in self.order:
            yield self.get_or_open(self.paths[number]).decode(start, LENGTH), number % CLASSES


class Pipeline(threading.Thread):
    """Runs the loader ahead of the training, two batches deep."""

    def __init__(self, loader, batch):
        super().__init__(name="pipeline", daemon=True)
        self.loader, self.batch = loader, batch
        self.output = queue.Queue(maxsize=2)

    def run(self):
        clips, labels = [], []
        try:
            for clip, label in self.loader:
                clips.append(clip)
                labels.append(label)
                if len(clips) == self.batch:
                    self.output.put((np.stack(clips), np.array(labels)))
                    clips, labels = [], []
            self.output.put(None)
        except RuntimeError as error:
            self.output.put(error)


def main():
    torch.manual_seed(0)
    pipeline = Pipeline(VideoLoader(write_videos(sys.argv[1])), 4)
    pipeline.start()
    model = nn.Sequential(
        nn.Conv3d(3, 28, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2),
        nn.Conv3d(28, 44, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(44, CLASSES),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    while (item := pipeline.output.get()) is not None:
        if isinstance(item, Exception):
            raise item
        clips, labels = item
        x = torch.from_numpy(clips).permute(0, 4, 1, 2, 3).float() / 255
        loss = nn.functional.cross_entropy(model(x), torch.from_numpy(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
