"""A server for a video model: frames go to a runner process and come back through two named segments."""

import os
import subprocess
import sys
import time
from multiprocessing import shared_memory

import numpy as np

FRAMES = 24
SHAPE = FRAMES, 240, 416, 3
SIZE = int(np.prod(SHAPE))
REQUESTS = 8


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    names = [f"video_{way}_{os.getpid()}" for way in ("in", "out")]
    segments = [shared_memory.SharedMemory(name, create=True, size=SIZE) for name in names]
    frames_in, frames_out = (np.ndarray(SHAPE, np.uint8, one.buf) for one in segments)
    random = np.random.default_rng(0)
    for job in range(2):
        runner = subprocess.Popen(
            [sys.executable, os.path.join(here, "runner.py"), *names, *map(str, SHAPE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for request in range(REQUESTS):
            frames_in[:] = random.integers(0, 255, SHAPE, np.uint8)
            try:
                print(request, file=runner.stdin, flush=True)
            except BrokenPipeError:
                pass
            answer = runner.stdout.readline()
            if not answer:
                raise RuntimeError(f"runner of job {job} ended with {runner.wait()}")
            print(f"job {job}, request {request}: {answer.strip()}, {frames_out.mean():.2f}", flush=True)
        runner.stdin.close()
        print(f"runner of job {job} ended with {runner.wait()} after {time.process_time():.1f} s", flush=True)


if __name__ == "__main__":
    main()
