"""One shard of the deduplication: buckets of its documents are scattered, then its share of the buckets is reduced"""

import json
import sys
import time

import numpy as np
from shuffle import ROW, ScatterWriter, merged_runs

FOLDER, SHARD, MEMORY = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
BATCHES, ROWS, BATCH_S = 230, 11_000, 0.1


def signatures(texts, planes):
    """The signs of random projections, and the bucket that they make"""
    return ((texts @ planes) > 0).astype(np.uint64) @ (np.uint64(1) << np.arange(20, dtype=np.uint64))


def scatter(writer):
    random = np.random.default_rng(SHARD)
    planes = random.normal(size=(48, 20)).astype(np.float32)
    begin = time.monotonic()
    for batch in range(BATCHES):
        texts = random.standard_normal((ROWS, 48), np.float32)
        rows = np.empty(ROWS, ROW)
        rows["bucket"] = signatures(texts, planes)
        rows["document"] = np.arange(ROWS) + (batch * 2 + SHARD) * ROWS
        rows["signature"] = random.integers(0, 1 << 32, (ROWS, 28), np.uint32)
        writer.add(rows)
        while time.monotonic() < begin + (batch + 1) * BATCH_S:
            signatures(texts, planes)
    writer.flush()


def reduce(runs):
    buckets, duplicates, last = 0, 0, None
    stream, passes = merged_runs(FOLDER, runs, f"shard{SHARD}")
    for rows in stream:
        end, values = time.monotonic() + 0.05, rows["bucket"]
        first = np.flatnonzero(np.diff(values, prepend=values[0] + 1 if last is None else last))
        buckets += len(first)
        duplicates += len(values) - len(first)
        last = values[-1]
        while time.monotonic() < end:
            rows["signature"][:2000].sum(1)
    return buckets, duplicates, passes


def main():
    writer = ScatterWriter(FOLDER, SHARD, MEMORY)
    scatter(writer)
    print(json.dumps({"shard": SHARD, "runs": len(writer.runs)}), flush=True)
    buckets, duplicates, passes = reduce(writer.runs)
    print(json.dumps({"shard": SHARD, "buckets": buckets, "duplicates": duplicates, "passes": passes}), flush=True)


if __name__ == "__main__":
    main()
