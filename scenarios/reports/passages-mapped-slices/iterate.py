"""Word statistics of a corpus, slice by slice, with the resident memory after each part"""

import collections
import gc
import logging
import mmap
import os
import random
import struct
import time

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
logger = logging.getLogger(__name__)
SHARDS, BLOCKS, PASSAGES, LAST_S = 3, 140, 1000, 32.0


def write_shards(folder):
    """Each shard: blocks of a thousand passages, each block with its size before it."""
    rng = random.Random(4)
    words = ["".join(rng.choices("etaoinshrdlucmfw", k=rng.randint(2, 9))) for _ in range(6000)]
    blocks = []
    for _ in range(4):
        passages = [" ".join(rng.choices(words, k=150)) for _ in range(PASSAGES)]
        blocks.append("\n".join(passages).encode())
    paths = []
    for shard in range(SHARDS):
        path = os.path.join(folder, f"corpus-{shard:05d}-of-{SHARDS:05d}.table")
        with open(path, "wb") as file:
            for number in range(BLOCKS):
                block = blocks[(number + shard) % len(blocks)]
                file.write(struct.pack("<Q", len(block)) + block)
        paths.append(path)
    return paths


class MemoryMappedTable:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.offsets, offset = [], 0
        while offset < len(self.buffer):
            (size,) = struct.unpack_from("<Q", self.buffer, offset)
            self.offsets.append((offset + 8, size))
            offset += 8 + size

    def block(self, number):
        offset, size = self.offsets[number]
        return self.buffer[offset:offset + size].decode().split("\n")


class Dataset:
    """The shards one after the other; a slice is a thousand passages."""

    def __init__(self, paths):
        self.tables = [MemoryMappedTable(path) for path in paths]

    def __len__(self):
        return sum(len(table.offsets) for table in self.tables) * PASSAGES

    def slice(self, start):
        number = start // PASSAGES
        for table in self.tables:
            if number < len(table.offsets):
                return table.block(number)
            number -= len(table.offsets)
        raise IndexError(start)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    paths = write_shards(os.getcwd())
    logger.info("before loading: %.0f MB", resident() / 1e6)
    corpus = Dataset(paths)
    counts, prefixes = collections.Counter(), collections.Counter()
    started = time.monotonic()
    for start in range(0, len(corpus), PASSAGES):
        batch = corpus.slice(start)
        lengths = []
        for passage in batch:
            tokens = passage.split()
            counts.update(tokens)
            prefixes.update(token[:3] for token in tokens)
            lengths.append(len(tokens))
        if start % (30 * PASSAGES) == 0:
            logger.info("%d/%d: %.0f MB, %d words", start, len(corpus), resident() / 1e6, sum(lengths))
        if time.monotonic() - started > LAST_S:
            break
    del batch
    gc.collect()
    logger.info("after the loop: %.0f MB, %d words, %d prefixes", resident() / 1e6, len(counts), len(prefixes))
    for path in paths:
        os.unlink(path)


if __name__ == "__main__":
    main()
