"""Distance prediction on frames of organoids, which are read from files on demand"""

import os
import queue
import tempfile
import threading
import time
from functools import lru_cache

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
FRAMES, SHAPE, PATCH, LAST_S = 256, (640, 512), 224, 29.0


def write_frames(folder):
    rng = np.random.default_rng(2)
    names = []
    for number in range(FRAMES):
        frame = rng.integers(80, 400, SHAPE, dtype=np.uint16)
        for row, column in rng.integers(20, 360, (6, 2)):
            frame[row:row + 24, column:column + 24] += 900
        np.save(os.path.join(folder, f"t{number:03d}.npy"), frame)
        names.append(os.path.join(folder, f"t{number:03d}.npy"))
    return names


def normalize(frame, low, high):
    bottom, top = np.percentile(frame, (low, high))
    return ((frame - bottom) / (top - bottom + 1e-6)).astype(np.float32)


class FileData:
    def __init__(self, filenames, key):
        self.filenames, self.key = filenames, key

    def __len__(self):
        return len(self.filenames)

    @lru_cache(100)
    def __getitem__(self, index):
        frame = np.load(self.filenames[index])
        if self.key == "image":
            return normalize(frame, 1, 99.8)
        return (frame > 600).astype(np.int32)


class Enqueuer:
    """Threads that cut patches of random frames, and put them into a queue of limited length."""

    def __init__(self, images, masks, threads=2, length=10):
        self.images, self.masks = images, masks
        self.queue = queue.Queue(length)
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.fill, args=(seed,)) for seed in range(threads)]
        for thread in self.threads:
            thread.start()

    def fill(self, seed):
        rng = np.random.default_rng(seed)
        while not self.stopped.is_set():
            patches = []
            for index in rng.integers(0, len(self.images), 2):
                image, mask = self.images[int(index)], self.masks[int(index)]
                row, column = rng.integers(0, SHAPE[0] - PATCH), rng.integers(0, SHAPE[1] - PATCH)
                cut = (slice(row, row + PATCH), slice(column, column + PATCH))
                patches.append((image[cut].copy(), mask[cut].copy()))
            while not self.stopped.is_set():
                try:
                    self.queue.put(patches, timeout=0.5)
                    break
                except queue.Full:
                    continue

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(),
        nn.Conv2d(24, 1, 3, padding=1),
    )
    optimizer = torch.optim.Adam(model.parameters(), 3e-4)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        names = write_frames(folder)
        enqueuer = Enqueuer(FileData(names, "image"), FileData(names, "mask"))
        started, step = time.monotonic(), 0
        while time.monotonic() - started < LAST_S:
            patches = enqueuer.queue.get(timeout=10)
            images = torch.from_numpy(np.stack([image for image, _ in patches]))[:, None]
            masks = torch.from_numpy(np.stack([mask for _, mask in patches]))[:, None].float()
            loss = nn.functional.binary_cross_entropy_with_logits(model(images), masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 25 == 0:
                print(f"step {step}: {loss.item():.4f} {FileData.__getitem__.cache_info()}", flush=True)
        enqueuer.stop()


if __name__ == "__main__":
    main()
