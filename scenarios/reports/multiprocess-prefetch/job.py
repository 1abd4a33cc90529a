"""A pool reads samples ahead into a queue of limited size: memory rises while the queue fills, and then stays."""

import multiprocessing
import queue
import threading
import time

import numpy as np
import torch

SECONDS = 34.0
BATCH_PRE_FETCH = 160
BATCH_SIZE = 8

_dataset = None


class Segmentation:
    size = (3, 160, 176)

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __getitem__(self, index):
        image = self.rng.random(self.size, dtype=np.float32)
        gt = (image[0] > 0.5).astype(np.uint8)
        return (image - image.mean()) / image.std(), gt


def _prefetch_setup(seed):
    global _dataset
    _dataset = Segmentation(seed)


def _feed(indices):
    samples = [_dataset[n] for n in indices]
    return np.stack([image for image, _ in samples]), np.stack([gt for _, gt in samples])


class MultiProcessDatasetPrefetchThread(threading.Thread):
    def __init__(self, result_queue, num_parallel_process=2):
        super().__init__(daemon=True)
        self.pool = multiprocessing.Pool(num_parallel_process, initializer=_prefetch_setup, initargs=(1,))
        self.result_queue = result_queue
        self.terminate = False

    def run(self):
        index = 0
        while not self.terminate:
            tasks = []
            for _ in range(4):
                tasks.append(self.pool.apply_async(_feed, (range(index, index + BATCH_SIZE),)))
                index += BATCH_SIZE
            for task in tasks:
                batch = task.get()
                while not self.terminate:
                    try:
                        self.result_queue.put(batch, timeout=0.5)
                        break
                    except queue.Full:
                        continue
        self.pool.close()
        self.pool.join()


def main():
    torch.set_num_threads(1)
    result_queue = queue.Queue(maxsize=BATCH_PRE_FETCH)
    prefetch = MultiProcessDatasetPrefetchThread(result_queue)
    prefetch.start()
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 2, 3, padding=1),
    )  # fmt: skip
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    end = time.monotonic() + SECONDS
    step = 0
    while time.monotonic() < end:
        images, gt = result_queue.get()
        loss = torch.nn.functional.cross_entropy(network(torch.from_numpy(images)), torch.from_numpy(gt).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print("step", step, "queued", result_queue.qsize(), loss.item(), flush=True)
        step += 1
    prefetch.terminate = True
    prefetch.join()


if __name__ == "__main__":
    main()
