"""Writes a table hour by hour: a file for each partition, with compressed column chunks and a footer"""

import json
import os
import shutil
import struct
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

ROWS, LAST_S, MAX_PARTITIONS = 320_000, 27.0, 150
COLUMNS = ("event_time", "user_id", "price", "quantity", "latitude", "longitude", "score")


def read_hour(hour):
    """What the query yields for an hour."""
    rng = np.random.default_rng(hour)
    frame = {
        "event_time": np.sort(rng.uniform(0, 3600, ROWS)) + hour * 3600,
        "user_id": rng.integers(0, 2**40, ROWS),
        "quantity": rng.poisson(3, ROWS),
    }
    for name in COLUMNS:
        if name not in frame:
            frame[name] = rng.standard_normal(ROWS)
    return frame


def compress_chunk(values):
    data = values.tobytes()
    statistics = {"min": float(values.min()), "max": float(values.max()), "rows": len(values)}
    return zlib.compress(data, 1), statistics


def write_parquet(frame, path, executor):
    footer, offset = {}, 4
    chunks = executor.map(compress_chunk, [frame[name] for name in COLUMNS])
    with open(path, "wb") as file:
        file.write(b"PAR1")
        for name, (chunk, statistics) in zip(COLUMNS, chunks):
            file.write(chunk)
            footer[name] = {"offset": offset, "size": len(chunk), **statistics}
            offset += len(chunk)
        trailer = json.dumps(footer).encode()
        file.write(trailer + struct.pack("<I", len(trailer)) + b"PAR1")
    return offset + len(trailer) + 8


def check(path):
    """Reads the footer and one chunk back."""
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        (size,) = struct.unpack("<I", file.read(4))
        file.seek(-8 - size, os.SEEK_END)
        footer = json.loads(file.read(size))
        file.seek(footer["price"]["offset"])
        values = np.frombuffer(zlib.decompress(file.read(footer["price"]["size"])))
    if len(values) != ROWS:
        raise ValueError(f"{path}: {len(values)} rows")


def main():
    folder = os.path.abspath("events")
    started, hour, written = time.monotonic(), 0, 0
    with ThreadPoolExecutor(2) as executor:
        while time.monotonic() - started < LAST_S:
            partition = os.path.join(folder, f"day={hour // 24 % 30:02d}", f"hour={hour % MAX_PARTITIONS:03d}")
            os.makedirs(partition, exist_ok=True)
            path = os.path.join(partition, "part-0.parquet")
            written += write_parquet(read_hour(hour), path, executor)
            check(path)
            hour += 1
            if hour % 10 == 0:
                print(f"{hour} partitions, {written / 2**20:.0f} MiB", flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
