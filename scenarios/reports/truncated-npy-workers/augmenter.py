"""Background processes make batches; a thread collects them for the trainer."""

import multiprocessing
import os
import queue
import threading
import traceback

import numpy as np


class CaseLoader:
    """Batches of patches of random cases. Every worker has its own order."""

    def __init__(self, folder, cases, batch_size, patch, seed):
        self.folder, self.cases, self.batch_size, self.patch = folder, cases, batch_size, patch
        self.rng = np.random.default_rng(seed)

    def __next__(self):
        patches, labels = [], []
        for _ in range(self.batch_size):
            case = self.cases[self.draw()]
            data = np.load(os.path.join(self.folder, f"{case}.npy"), mmap_mode="r")
            starts = [self.rng.integers(0, side - size + 1) for side, size in zip(data.shape[1:], self.patch)]
            cut = tuple(slice(start, start + size) for start, size in zip(starts, self.patch))
            patches.append(np.array(data[(slice(0, 1), *cut)], np.float32))
            labels.append(np.array(data[(1, *cut)] > 0, np.int64))
        return np.stack(patches), np.stack(labels)

    def draw(self):
        """The cases that were unpacked last are drawn last, as in a training that goes on while others unpack."""
        self.drawn = getattr(self, "drawn", 0) + 1
        return int(self.rng.integers(0, min(len(self.cases), 4 + self.drawn // 30)))


def augment(patches, rng):
    for axis in (2, 3, 4):
        if rng.random() < 0.5:
            patches = np.flip(patches, axis)
    blurred = (patches + np.roll(patches, 1, 2) + np.roll(patches, -1, 3) + np.roll(patches, 1, 4)) / 4
    gamma = rng.uniform(0.7, 1.5)
    low, high = blurred.min(), blurred.max()
    scaled = (blurred - low) / max(high - low, 1e-6)
    return np.ascontiguousarray(scaled**gamma * (high - low) + low, np.float32)


def producer(results, loader, number, abort):
    try:
        rng = np.random.default_rng(number)
        while not abort.is_set():
            patches, labels = next(loader)
            item = augment(patches, rng), labels
            while not abort.is_set():
                try:
                    results.put(item, timeout=1)
                    break
                except queue.Full:
                    continue
    except Exception:
        print(f"Exception in background worker {number}:\n{traceback.format_exc()}", flush=True)
        abort.set()


class NonDetMultiThreadedAugmenter:
    def __init__(self, loaders, cached=4):
        self.abort = multiprocessing.Event()
        self.results, self.ready = multiprocessing.Queue(cached), queue.Queue(cached)
        self.processes = [
            multiprocessing.Process(target=producer, args=(self.results, loader, n, self.abort), daemon=True)
            for n, loader in enumerate(loaders)
        ]
        for process in self.processes:
            process.start()
        self.thread = threading.Thread(target=self.results_loop, daemon=True)
        self.thread.start()

    def results_loop(self):
        while True:
            if self.abort.is_set() or not all(process.is_alive() for process in self.processes):
                self.abort.set()
                raise RuntimeError("One or more background workers are no longer alive. Exiting.")
            try:
                self.ready.put(self.results.get(timeout=1))
            except queue.Empty:
                continue

    def __next__(self):
        while True:
            try:
                return self.ready.get(timeout=1)
            except queue.Empty:
                if self.abort.is_set():
                    raise RuntimeError("Background workers have died. Look for their message above.") from None
