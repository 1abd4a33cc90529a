"""Calls consensus reads: families of reads go in numbered batches to workers, and come back in order to the writer"""

import argparse
import multiprocessing
import queue
import time
import zlib

import numpy as np

WORKERS, TRANSPORT = 2, 8
LENGTH, FAMILIES, DEPTH, MAX_DEPTH = 150, 320, 6, 1000
DEEP_SERIAL, DEEP_READS = 40, 16_000
BATCH_S = 0.03


def read_batch(serial):
    """The reads of the families of a batch, as codes of their bases; families, reads, positions"""
    generator = np.random.default_rng(serial)
    families, depth = (1, DEEP_READS) if serial == DEEP_SERIAL else (FAMILIES, DEPTH)
    truth = generator.integers(0, 4, (families, 1, LENGTH), np.uint8)
    reads = np.repeat(truth, depth, axis=1)
    wrong = generator.random(reads.shape, np.float32) < 0.01
    reads[wrong] = generator.integers(0, 4, int(wrong.sum()), np.uint8)
    return reads


def collapse(reads):
    """One read for each group of a deep family, whose reads are joined by their distances, in rounds"""
    hot = np.zeros((len(reads), 4 * LENGTH), np.float32)
    hot[np.arange(len(reads))[:, None], 4 * np.arange(LENGTH) + reads] = 1.0
    labels = np.arange(len(reads))
    for radius in range(1, LENGTH):
        for start in range(0, len(hot), 64):
            distances = LENGTH - hot[start:start + 64] @ hot.T
            nearest = np.where(distances <= radius, labels, len(reads)).min(1)
            labels[start:start + 64] = np.minimum(labels[start:start + 64], nearest)
    return reads[None, np.unique(labels)]


def call_consensus(reads, until):
    """The called bases, their qualities and the counts; the error rate is fitted for the time of a batch"""
    counts = np.stack([(reads == base).sum(1) for base in range(4)], axis=-1).astype(np.int16)
    error = 0.05
    while True:
        logs = counts * np.log((1 - error) / (error / 3))
        logs -= logs.max(-1, keepdims=True)
        posterior = np.exp(logs)
        posterior /= posterior.sum(-1, keepdims=True)
        called = posterior.argmax(-1)
        agreed = np.take_along_axis(counts, called[..., None], -1).sum() / counts.sum()
        error = float(np.clip(1 - agreed, 1e-4, 0.3))
        if time.monotonic() > until:
            break
    quality = -10 * np.log10(np.clip(1 - posterior.max(-1), 1e-6, 1.0))
    return called.astype(np.uint8), quality.astype(np.float32), counts


def work(transport, counter, stop_at):
    while time.monotonic() < stop_at:
        with counter.get_lock():
            serial = counter.value
            counter.value += 1
        until = time.monotonic() + BATCH_S
        reads = read_batch(serial)
        if reads.shape[1] > MAX_DEPTH:
            reads = collapse(reads[0])
        transport.put((serial, call_consensus(reads, until)))


class ReorderStage:
    """Hands out the batches in the order of their numbers"""

    def __init__(self, transport):
        self.transport, self.stash, self.next_serial = transport, {}, 0

    def pop_in_order(self, stop_at):
        """The next batch; None if the time is over"""
        while self.next_serial not in self.stash:
            if time.monotonic() > stop_at:
                return None
            try:
                serial, batch = self.transport.get(timeout=0.5)
            except queue.Empty:
                continue
            self.stash[serial] = batch
        batch = self.stash.pop(self.next_serial)
        self.next_serial += 1
        return batch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--walltime", type=float, required=True)
    arguments = parser.parse_args()
    stop_at = time.monotonic() + arguments.walltime
    context = multiprocessing.get_context("fork")
    transport, counter = context.Queue(TRANSPORT), context.Value("L", 0)
    workers = [
        context.Process(target=work, args=(transport, counter, stop_at), daemon=True) for _ in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    stage, reads = ReorderStage(transport), 0
    with open(arguments.output, "wb") as file:
        while (batch := stage.pop_in_order(stop_at)) is not None:
            called, quality, counts = batch
            file.write(zlib.compress(called.tobytes() + quality.astype(np.uint8).tobytes(), 1))
            reads += len(called)
            if stage.next_serial % 20 == 0:
                print(f"{reads} consensus reads, depth {counts.sum(-1).mean():.1f}", flush=True)
    for worker in workers:
        worker.terminate()
        worker.join()
    print(f"walltime is over: {reads} consensus reads of {stage.next_serial} batches", flush=True)


if __name__ == "__main__":
    main()
