"""Rolling features of a table of meter readings, one column after the other, each by all workers"""

import multiprocessing
import os
import pickle
import tempfile
import time

import numpy as np

MEMORY_FS_ROOT = "/dev/shm"
ROWS, WORKERS, WINDOW = 160_000, 2, 240


def rolling_quantile(frame, column, quantile, shift):
    values = np.concatenate([np.full(WINDOW - 1, frame[column][0]), np.roll(frame[column], shift)])
    windows = np.lib.stride_tricks.sliding_window_view(values, WINDOW)
    result = np.empty(len(windows))
    for start in range(0, len(windows), 8000):
        result[start:start + 8000] = np.percentile(windows[start:start + 8000], quantile, axis=1)
    return result


def global_worker(task):
    input_path, output_path, name, arguments = task
    with open(input_path, "rb") as file:
        frame = pickle.load(file)
    frame[name] = rolling_quantile(frame, *arguments)
    with open(output_path, "wb") as file:
        pickle.dump(frame, file, protocol=5)
    return len(frame[name])


class ParallelFrame:
    def __init__(self, columns, pool):
        self.columns, self.pool = columns, pool

    def parts(self):
        edges = np.linspace(0, ROWS, WORKERS + 1).astype(int)
        for low, high in zip(edges[:-1], edges[1:]):
            yield {name: values[low:high] for name, values in self.columns.items()}

    def parallel_apply(self, name, arguments):
        paths = []
        try:
            tasks = []
            for part in self.parts():
                pair = []
                for kind in ("input", "output"):
                    handle, path = tempfile.mkstemp(prefix=f"pandarallel_{kind}_", suffix=".pickle", dir=MEMORY_FS_ROOT)
                    os.close(handle)
                    paths.append(path)
                    pair.append(path)
                with open(pair[0], "wb") as file:
                    pickle.dump(part, file, protocol=5)
                tasks.append((*pair, name, arguments))
            self.pool.map(global_worker, tasks, chunksize=1)
            parts = []
            for _, output_path, _, _ in tasks:
                with open(output_path, "rb") as file:
                    parts.append(pickle.load(file))
            self.columns = {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
        finally:
            for path in paths:
                os.unlink(path)


def main():
    rng = np.random.default_rng(11)
    hours = np.arange(ROWS)
    columns = {
        "load": 40 + 8 * np.sin(hours / 24 * 2 * np.pi) + rng.normal(0, 2, ROWS),
        "temperature": 11 + 9 * np.sin(hours / 8760 * 2 * np.pi) + rng.normal(0, 1, ROWS),
        "price": rng.gamma(3.0, 14.0, ROWS),
    }
    started = time.monotonic()
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        frame = ParallelFrame(columns, pool)
        for number in range(48):
            column = ("load", "temperature", "price")[number % 3]
            frame.parallel_apply(f"{column}_q{number:02d}", (column, 5 + 2 * (number % 45), number))
            if number % 6 == 0:
                took = time.monotonic() - started
                print(f"{len(frame.columns)} columns after {took:.1f} s", flush=True)
    print("features written", flush=True)


if __name__ == "__main__":
    main()
