"""Frames of a live stream through a decoder process and a multiprocessing.Queue, as image2pipe has it; a detector reads them."""

import multiprocessing as mp
import subprocess
import sys
import time
from multiprocessing import Queue

import numpy as np
import torch

HEIGHT, WIDTH = 540, 960
STREAM_SECONDS = 27

# What `ffmpeg -i URL -f rawvideo -pix_fmt yuv444p -` would print of a camera: 25 raw frames a second, without end.
FFMPEG = """
import os, sys, time
size = int(sys.argv[1])
noise = os.urandom(size + 4096)
n, began = 0, time.monotonic()
try:
    while True:
        n += 1
        time.sleep(max(0, began + n / 25 - time.monotonic()))
        sys.stdout.buffer.write(noise[n % 4096:n % 4096 + size])
except BrokenPipeError:
    os._exit(0)
"""


class Decoder(mp.Process):
    def __init__(self, out_q, scale):
        super().__init__(daemon=True)
        self.out_q = out_q
        self.scale = scale

    def run(self):
        width, height = self.scale
        frame_size = width * height * 3
        ffmpeg = subprocess.Popen(
            [sys.executable, "-S", "-c", FFMPEG, str(frame_size)], stdout=subprocess.PIPE, bufsize=frame_size * 5
        )
        matrix = np.array([[1.0, 0.0, 1.4], [1.0, -0.34, -0.71], [1.0, 1.77, 0.0]], np.float32)
        fn = 0
        while fn < 1050:
            fn += 1
            raw = ffmpeg.stdout.read(frame_size)
            yuv = np.frombuffer(raw, np.uint8).reshape(height, width, 3)
            rgb = np.clip(yuv.astype(np.float32) @ matrix.T, 0, 255) / 255
            rgb = (np.sqrt(rgb) * 255).astype(np.uint8)
            self.out_q.put((fn, rgb))
        ffmpeg.stdout.close()
        ffmpeg.wait()
        self.out_q.put(None)


def images_from_url(q, scale):
    return Decoder(q, scale)


def yield_from_queue(q):
    while True:
        item = q.get()
        if item is None:
            return
        yield item


def main():
    torch.set_num_threads(1)
    detector = torch.nn.Sequential(
        torch.nn.Conv2d(3, 24, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(24, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
    ).eval()
    q = Queue()
    decoder = images_from_url(q, scale=(WIDTH, HEIGHT))
    decoder.start()
    began, seen = time.monotonic(), 0
    with torch.no_grad():
        for fn, img in yield_from_queue(q):
            batch = torch.from_numpy(img).permute(2, 0, 1).float().div_(255)[None]
            score = detector(batch).flatten()
            for _ in range(2):  # the picture mirrored, as test-time augmentation
                score = score + detector(batch.flip(3)).flatten()
            seen += 1
            if fn % 20 == 0:
                print(fn, float(score.max()), flush=True)
            if time.monotonic() - began > STREAM_SECONDS:
                break
    print(f"{seen} frames in {time.monotonic() - began:.0f} s")
    decoder.kill()
    decoder.join()


if __name__ == "__main__":
    main()
