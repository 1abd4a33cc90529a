"""Watch two cameras: a process captures each, one process looks for objects, and a watchdog looks after them."""

import multiprocessing as mp
import os
import queue
import sys
import time
from collections import deque
from multiprocessing import shared_memory

import numpy as np

CAMERAS = ("front", "driveway")
SHAPE = (2160 * 3 // 2, 3840)  # yuv420
FPS = 4
TRACKED_FRAMES = 7
MOTION_AFTER = 15
END = 40


def segment(camera, number):
    return f"rec{os.environ['RECORDER']}_{camera}_{number}"


def capture_frames(camera, frames, stop):
    """Put each frame of a camera into a segment, and its name into the queue."""
    rng = np.random.default_rng(len(camera))
    row = rng.integers(0, 255, SHAPE[1], dtype=np.uint8)
    number = 0
    while not stop.is_set():
        time.sleep(1 / FPS)
        if frames.full():
            continue
        memory = shared_memory.SharedMemory(segment(camera, number), create=True, size=SHAPE[0] * SHAPE[1])
        picture = np.ndarray(SHAPE, dtype=np.uint8, buffer=memory.buf)
        picture[:] = row
        del picture
        memory.close()
        frames.put((camera, number))
        number += 1


def process_objects(frames, stop):
    """Look at each frame, and keep the last ones of what is tracked."""
    kept = {camera: deque() for camera in CAMERAS}
    begin = time.monotonic()
    seen = 0
    while not stop.is_set():
        try:
            camera, number = frames.get(timeout=0.5)
        except queue.Empty:
            continue
        memory = shared_memory.SharedMemory(segment(camera, number))
        picture = np.ndarray(SHAPE, dtype=np.uint8, buffer=memory.buf)
        score = float(picture[::8, ::8].std())
        del picture
        memory.close()
        kept[camera].append(number)
        tracked = time.monotonic() - begin > MOTION_AFTER
        while len(kept[camera]) > (TRACKED_FRAMES if tracked else 1):
            old = shared_memory.SharedMemory(segment(camera, kept[camera].popleft()))
            old.close()
            old.unlink()
        seen += 1
        if seen % 20 == 0:
            print(f"{seen} frames, {camera} score {score:.1f}", flush=True)


def main():
    os.environ["RECORDER"] = str(os.getpid())
    context = mp.get_context("fork")
    stop = context.Event()
    frames = context.Queue(maxsize=4)
    processes = [context.Process(target=capture_frames, args=(c, frames, stop), name=f"capture:{c}") for c in CAMERAS]
    processes.append(context.Process(target=process_objects, args=(frames, stop), name="objects"))
    first = shared_memory.SharedMemory(segment("probe", 0), create=True, size=4096)
    first.close()
    first.unlink()
    for process in processes:
        process.start()
    begin, code = time.monotonic(), 0
    while time.monotonic() - begin < END:
        time.sleep(1)
        dead = [p for p in processes if not p.is_alive()]
        if dead:
            print(f"{dead[0].name} exited unexpectedly with {dead[0].exitcode}", file=sys.stderr)
            code = 1
            break
    stop.set()
    for process in processes:
        process.join(5)
        if process.is_alive():
            process.terminate()
    for name in os.listdir("/dev/shm"):
        if name.startswith(segment("", 0).rsplit("__", 1)[0] + "_"):
            os.unlink(os.path.join("/dev/shm", name))
    sys.exit(code)


if __name__ == "__main__":
    main()
