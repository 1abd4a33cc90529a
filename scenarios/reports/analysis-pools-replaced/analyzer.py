"""The audio analyzer: takes tracks in batches of eight, and has their mood and key found by a pool of processes"""

import collections
import concurrent.futures
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS, BATCH, WORKERS, BATCH_TIMEOUT_S, TRACK_S = 27.0, 8, 2, 2.6, 0.42
BANDS, HIDDEN, FRAME = 512, 2304, 2048
models = {}


def load_models(port):
    """The networks of a worker, when it starts"""
    random = np.random.default_rng(0)
    models["port"] = port
    models["moods"] = random.standard_normal((BANDS, HIDDEN), np.float32)
    models["keys"] = random.standard_normal((HIDDEN, 4 * BANDS), np.float32)


def read_track(track):
    with socket.create_connection(("127.0.0.1", models["port"])) as connection:
        connection.sendall(struct.pack("<I", track))
        with connection.makefile("rb") as file:
            head = file.read(4)
            if len(head) < 4:
                raise OSError(f"track {track}: input/output error")
            return np.frombuffer(file.read(struct.unpack("<I", head)[0]), "<f4")


def analyze_track(track):
    samples, end, scores = read_track(track), time.monotonic() + TRACK_S, []
    while time.monotonic() < end:
        for start in range(0, len(samples) - FRAME, 64 * FRAME):
            frames = samples[start : start + 64 * FRAME]
            spectrum = np.abs(np.fft.rfft(frames[: len(frames) // FRAME * FRAME].reshape(-1, FRAME)))[:, :BANDS]
            scores.append(np.maximum(spectrum @ models["moods"], 0).mean(0) @ models["keys"])
    return track, int(np.mean(scores, 0).argmax())


class Analyzer:
    def __init__(self, port):
        self.port, self.executor = port, None
        self.tracks, self.results, self.timeouts = collections.deque(range(600)), {}, 0

    def ensure_executor(self):
        if self.executor is None:
            self.executor = concurrent.futures.ProcessPoolExecutor(
                WORKERS, multiprocessing.get_context("fork"), load_models, (self.port,)
            )

    def discard_executor(self):
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = None

    def process_batch(self):
        self.ensure_executor()
        batch = [self.tracks.popleft() for _ in range(BATCH)]
        futures = {self.executor.submit(analyze_track, track): track for track in batch}
        try:
            for future in concurrent.futures.as_completed(futures, BATCH_TIMEOUT_S):
                track, key = future.result()
                self.results[track] = key
                del futures[future]
        except (concurrent.futures.TimeoutError, concurrent.futures.process.BrokenProcessPool) as error:
            self.timeouts += 1
            print(f"batch failed with {error}, {len(futures)} tracks go back", flush=True)
            self.tracks.extend(futures.values())
            self.discard_executor()


def main():
    share = subprocess.Popen([sys.executable, os.path.join(HERE, "share.py")], stdout=subprocess.PIPE, text=True)
    analyzer, end = Analyzer(int(share.stdout.readline())), time.monotonic() + SECONDS
    while time.monotonic() < end:
        analyzer.process_batch()
        print(f"{len(analyzer.results)} tracks analyzed, {analyzer.timeouts} batches timed out", flush=True)
    share.terminate()
    share.wait()
    if analyzer.executor is not None:
        analyzer.executor.shutdown()


if __name__ == "__main__":
    main()
