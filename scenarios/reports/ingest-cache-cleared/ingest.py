"""Imports documents: splits them into chunks, and two workers embed these and write them to their files"""

import multiprocessing
import os
import random
import tempfile
import time

import numpy as np

RUN_S, WORKERS = 32.0, 2
CHUNKS, BATCH_S = 64, 0.045
KEPT = 400


def write_rows(file, vectors):
    """The last rows are enough for this import: the file goes round"""
    if file.tell() > KEPT * vectors[0].nbytes:
        file.seek(0)
    file.write(np.stack(vectors).tobytes())


def ingest_worker(number, documents, folder):
    import torch

    from embedding import EmbeddingProvider

    torch.set_num_threads(1)
    provider, seen = EmbeddingProvider(), 0
    with open(os.path.join(folder, f"part-{number}.f32"), "wb") as file:
        while (chunks := documents.get()) is not None:
            write_rows(file, provider.embed(chunks, BATCH_S))
            seen += len(chunks)
            if seen % (CHUNKS * 100) == 0:
                size = len(provider.vectors)
                print(f"worker {number}: {seen} chunks, {provider.hits} hits, {size} cached", flush=True)
    print(f"worker {number}: cleared its cache {provider.cleared} times", flush=True)


def document(draw, words, common):
    chunks = [" ".join(draw.choices(words, k=40)) for _ in range(CHUNKS - 4)]
    return chunks + draw.sample(common, 4)


def main():
    draw = random.Random(0)
    words = [draw.randbytes(draw.randrange(2, 6)).hex() for _ in range(5000)]
    common = [" ".join(draw.choices(words, k=40)) for _ in range(50)]
    context = multiprocessing.get_context("spawn")
    documents = context.Queue(8)
    with tempfile.TemporaryDirectory() as folder:
        workers = [
            context.Process(target=ingest_worker, args=(number, documents, folder)) for number in range(WORKERS)
        ]
        for worker in workers:
            worker.start()
        end = time.monotonic() + RUN_S
        while time.monotonic() < end:
            documents.put(document(draw, words, common))
        for _ in workers:
            documents.put(None)
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main()
