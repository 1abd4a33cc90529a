"""Another worker: sends the partitions of a frame of click features, one after the other"""

import sys

import numpy as np
import pyarrow as pa

partitions, rows = int(sys.argv[1]), int(sys.argv[2])
generator = np.random.default_rng(5)
schema = pa.schema([("user", pa.int64()), ("price", pa.float64()), ("clicks", pa.int32()), ("item", pa.string())])
words = np.array([f"item-{number:06d}" for number in range(5000)])
with pa.ipc.new_stream(sys.stdout.buffer, schema) as stream:
    for _ in range(partitions):
        columns = [
            pa.array(generator.zipf(1.6, rows).clip(max=1 << 40)),
            pa.array(generator.lognormal(3, 1, rows)),
            pa.array(generator.poisson(3, rows), pa.int32()),
            pa.array(words[generator.integers(0, len(words), rows)]),
        ]
        try:
            stream.write_batch(pa.record_batch(columns, schema=schema))
        except OSError:
            break
