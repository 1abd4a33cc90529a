"""Filters a corpus by the number of tokens, in two processes, and shows how long the texts that stay are"""

import multiprocessing
import multiprocessing.connection
import time

import numpy as np
import torch
from ops import DEFAULT_BATCH_SIZE, TokenNumFilter

PROCESSES, SECONDS = 2, 27


def words():
    letters = np.random.default_rng(0).integers(97, 123, (30000, 9), dtype=np.uint8)
    lengths = np.random.default_rng(1).integers(2, 10, 30000)
    return np.array([bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)])


def batches(shard):
    """Batches of a shard's rows, until the time is over"""
    vocabulary, generator = words(), np.random.default_rng(10 + shard)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        lengths = generator.integers(700, 1500, DEFAULT_BATCH_SIZE)
        texts = [" ".join(vocabulary[generator.integers(0, len(vocabulary), length)]) for length in lengths]
        yield {"text": texts, "stats": [{} for _ in texts]}


def run_shard(shard, connection):
    filter_op = TokenNumFilter()
    with connection:
        for samples in batches(shard):
            kept = filter_op.run(samples)
            connection.send([stats["num_token"] for stats in kept["stats"]])


def main():
    torch.set_num_threads(1)
    context = multiprocessing.get_context("fork")
    connections, processes = [], []
    for shard in range(PROCESSES):
        ours, theirs = context.Pipe(duplex=False)
        processes.append(context.Process(target=run_shard, args=(shard, theirs)))
        processes[-1].start()
        theirs.close()
        connections.append(ours)
    histogram, rows = torch.zeros(16), 0
    while connections:
        for connection in multiprocessing.connection.wait(connections):
            try:
                counts = connection.recv()
            except EOFError:
                connections.remove(connection)
                continue
            histogram += torch.histc(torch.tensor(counts, dtype=torch.float32), bins=16, min=0, max=2048)
            rows += len(counts)
            print(f"{rows} rows kept, most in bin {int(histogram.argmax())}", flush=True)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
