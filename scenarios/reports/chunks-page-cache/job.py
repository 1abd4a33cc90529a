"""Tiles are processed in chunks by a process pool; the chunk files fill the container with page cache, and no more."""

import concurrent.futures
import os
import tempfile
import time

import numpy as np

SECONDS = 32.0
ROWS, COLUMNS = 256 * 1024, 12


def process_chunk(task):
    """Features of one chunk of parcels: computed, written, and read back to be checked."""
    chunk_path, chunk_id = task
    rng = np.random.default_rng(chunk_id)
    base = rng.random((2048, COLUMNS), dtype=np.float32)
    rollup = np.linalg.svd(base, full_matrices=False)[1]
    path = os.path.join(chunk_path, f"rollup_{chunk_id:04}.npy")
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(1, COLUMNS))
    out[:] = rollup
    del out
    with open(os.path.join(chunk_path, f"features_{chunk_id:04}.bin"), "wb") as f:
        for _ in range(ROWS // len(base)):
            f.write((base * rollup).tobytes())
    with open(os.path.join(chunk_path, f"features_{chunk_id:04}.bin"), "rb") as f:
        checksum = 0
        while block := f.read(1 << 20):
            checksum ^= hash(block)
    return chunk_id, checksum


def consolidate(chunk_path, done):
    return np.concatenate([np.load(os.path.join(chunk_path, f"rollup_{chunk_id:04}.npy")) for chunk_id in done])


def main():
    with tempfile.TemporaryDirectory(prefix="nmaipy-") as chunk_path:
        done = []
        end = time.monotonic() + SECONDS
        with concurrent.futures.ProcessPoolExecutor(max_workers=2) as executor:
            chunk_id, jobs = 0, set()
            while time.monotonic() < end or jobs:
                while len(jobs) < 3 and time.monotonic() < end:
                    jobs.add(executor.submit(process_chunk, (chunk_path, chunk_id)))
                    chunk_id += 1
                finished, jobs = concurrent.futures.wait(jobs, return_when=concurrent.futures.FIRST_COMPLETED)
                for job in finished:
                    done.append(job.result()[0])
                    old = done[-1] - 120
                    if old >= 0 and os.path.exists(os.path.join(chunk_path, f"features_{old:04}.bin")):
                        os.remove(os.path.join(chunk_path, f"features_{old:04}.bin"))
                if len(done) % 20 == 0:
                    print("chunks", len(done), flush=True)
        print(consolidate(chunk_path, sorted(done)).mean())


if __name__ == "__main__":
    main()
