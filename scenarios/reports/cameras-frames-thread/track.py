"""Tracks people over two cameras: a thread reads the frames of all cameras, main detects and matches."""

import os
import queue
import threading
import time

import numpy as np
import torch

SHAPE = 288, 512, 3
FRAMES = 40
SECONDS = 40


class Capture:
    """Raw frames of a recording, over and over."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.size = int(np.prod(SHAPE))

    def read(self):
        data = self.file.read(self.size)
        if len(data) < self.size:
            self.file.seek(0)
            data = self.file.read(self.size)
        return np.frombuffer(data, np.uint8).reshape(SHAPE)


class FramesThread(threading.Thread):
    """Should keep the queue at max_length; it waits a moment, and then reads on all the same."""

    def __init__(self, captures, max_length=2):
        super().__init__(name="frames")
        self.captures = captures
        self.frames = queue.Queue()
        self.max_length = max_length
        self.process = True

    def run(self):
        while self.process:
            if self.frames.qsize() > self.max_length:
                time.sleep(0.03)
            self.frames.put([capture.read() for capture in self.captures])


def detector():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 24, 3, 2, 1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(24, 48, 3, 2, 1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(48, 48, 3, 1, 1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(48, 96, 3, 2, 1),
        torch.nn.Conv2d(96, 5, 1),
    )


def main():
    random = np.random.default_rng(0)
    for camera in range(2):
        with open(f"camera-{camera}.raw", "wb") as file:
            for _ in range(FRAMES):
                file.write(random.integers(0, 255, SHAPE, np.uint8).tobytes())
    captures = [Capture(f"camera-{camera}.raw") for camera in range(2)]
    torch.set_num_threads(1)
    model = detector().eval()
    thread = FramesThread(captures)
    thread.start()
    start, pairs, people = time.monotonic(), 0, 0
    with torch.no_grad():
        while time.monotonic() - start < SECONDS:
            images = np.stack(thread.frames.get())
            images = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
            for turned in (images, images.flip(3), images.flip(2), images.flip(2, 3)):
                people += int((model(turned)[:, 0] > 0.5).sum())
            pairs += 1
            if pairs % 50 == 0:
                print(f"{pairs} pairs of frames after {time.monotonic() - start:.0f} s", flush=True)
    thread.process = False
    thread.join()
    for camera in range(2):
        os.remove(f"camera-{camera}.raw")


if __name__ == "__main__":
    main()
