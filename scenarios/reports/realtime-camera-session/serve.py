"""The API process: reads a camera, commits each frame to a session of the engine, and shows the replies"""

import multiprocessing
import time

import numpy as np

SECONDS, INTERVAL_S, FRAME = 28.0, 0.05, 256


def camera():
    """A moving scene with noise"""
    generator = np.random.default_rng(1)
    scene = generator.integers(0, 200, (3, FRAME, 2 * FRAME), np.uint8)
    end, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        frame = np.roll(scene, number * 3, axis=2)[:, :, :FRAME]
        yield number, frame + generator.integers(0, 50, frame.shape, np.uint8)
        number += 1


def engine_core(connection):
    from core import run_engine_core  # only the engine needs torch

    run_engine_core(connection)


def main():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    engine = context.Process(target=engine_core, args=(theirs,), name="EngineCore")
    engine.start()
    theirs.close()
    due = time.monotonic()
    for number, frame in camera():
        ours.send(("rt-session-1", f"frame-{number}", frame))
        token = ours.recv()
        due = max(due + INTERVAL_S, time.monotonic())
        ours.poll(max(0.0, due - time.monotonic()))
        if number % 80 == 0:
            print(f"frame {number}: token {token}", flush=True)
    ours.send(None)
    print(f"session of {ours.recv()} replies", flush=True)
    engine.join()


if __name__ == "__main__":
    main()
