"""Filter a recording of neurons and save it as compressed chunks, with a job for each chunk in worker processes"""

import lzma
import os
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context

import numpy as np
import torch

CHANNELS, RATE, CHUNK = 20, 30_000, 30_000
SECONDS = 26.0
worker_ctx = {}


class RawRecording:
    """Samples in a flat binary file"""

    def __init__(self, path, channels=CHANNELS):
        self.path, self.channels = path, channels
        self.frames = os.path.getsize(path) // (2 * channels)

    def get_traces(self, start, end):
        start %= self.frames - CHUNK
        count = CHUNK * self.channels
        values = np.fromfile(self.path, dtype=np.int16, count=count, offset=2 * start * self.channels)
        return values.reshape(CHUNK, self.channels)


class BandpassSegment:
    def __init__(self, recording, start, end):
        self.recording, self.start, self.end = recording, start, end
        self.traces = None

    def get_traces(self):
        if self.traces is None:
            raw = self.recording.parent.get_traces(self.start, self.end).astype(np.float32)
            spectrum = np.fft.rfft(raw, axis=0)
            spectrum *= self.recording.gains[:, None]
            self.traces = np.fft.irfft(spectrum, n=len(raw), axis=0).astype(np.float32)
        return self.traces


class BandpassRecording:
    """A part of a recording, filtered when it is first asked for"""

    def __init__(self, parent, gains, start, end):
        self.parent, self.gains = parent, gains
        self.segment = BandpassSegment(self, start, end)


def write_binary(path, seconds=8):
    generator = np.random.default_rng(9)
    with open(path, "wb") as file:
        for second in range(seconds):
            noise = generator.normal(0, 40, (RATE, CHANNELS))
            noise[generator.integers(0, RATE, 200)] -= 300
            file.write(noise.astype(np.int16).tobytes())


def bandpass_gains(low=300.0, high=6000.0):
    frequencies = torch.fft.rfftfreq(CHUNK, 1 / RATE)
    rise = torch.sigmoid((frequencies - low) / 40)
    return (rise * torch.sigmoid((high - frequencies) / 400)).numpy()


def init_zarr_worker(path, folder, gains):
    torch.set_num_threads(1)
    worker_ctx.update(recording=RawRecording(path), folder=folder, gains=gains)


def write_zarr_chunk(number):
    start = number * CHUNK // 3
    part = BandpassRecording(worker_ctx["recording"], worker_ctx["gains"], start, start + CHUNK)
    traces = part.segment.get_traces()
    packed = lzma.compress(np.round(traces * 4).astype(np.int16).tobytes(), preset=6)
    with open(os.path.join(worker_ctx["folder"], f"{number % 64}.0"), "wb") as file:
        file.write(packed)
    return len(packed)


def main():
    write_binary("raw.bin")
    os.makedirs("traces.zarr", exist_ok=True)
    arguments = ("raw.bin", "traces.zarr", bandpass_gains())
    started, number, written = time.monotonic(), 0, 0
    with ProcessPoolExecutor(2, get_context("fork"), init_zarr_worker, arguments) as executor:
        running = set()
        while running or number == 0:
            while len(running) < 4 and time.monotonic() - started < SECONDS:
                running.add(executor.submit(write_zarr_chunk, number))
                number += 1
            done, running = wait(running, return_when=FIRST_COMPLETED)
            written += sum(job.result() for job in done)
            if number % 10 == 0:
                print(f"write_zarr: {number} chunks, {written / 2**20:.1f} MiB", flush=True)
    print(f"saved {number} chunks in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
