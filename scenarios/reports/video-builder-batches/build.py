"""Builds a dataset of sign language videos: a generator of examples, and a writer that collects batches of them"""

import os
import tempfile
import time

import numpy as np
import pyarrow as pa

FRAMES, HEIGHT, WIDTH = 60, 96, 72
SECONDS, VIDEO_S = 36.0, 0.04


class ArrowWriter:
    def __init__(self, path, writer_batch_size):
        self.writer_batch_size = writer_batch_size
        self.schema = pa.schema([("id", pa.string()), ("video", pa.list_(pa.binary()))])
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self.stream = pa.ipc.new_stream(path, self.schema, options=options)
        self.current_rows = []
        self.num_examples = 0

    def write(self, key, example):
        self.current_rows.append((key, example["video"]))
        if len(self.current_rows) >= self.writer_batch_size:
            self.write_on_file()

    def write_on_file(self):
        if not self.current_rows:
            return
        keys = pa.array([key for key, _ in self.current_rows], pa.string())
        frames = [[frame.tobytes() for frame in video] for _, video in self.current_rows]
        videos = pa.array(frames, pa.list_(pa.binary()))
        self.stream.write_batch(pa.record_batch([keys, videos], schema=self.schema))
        self.num_examples += len(self.current_rows)
        self.current_rows = []
        print(f"{self.num_examples} examples written", flush=True)

    def finalize(self):
        self.write_on_file()
        self.stream.close()


class PhoenixWeather:
    """Signers in front of a plain background"""

    writer_batch_size = 100

    def __init__(self):
        self.rows, self.columns = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)

    def render(self, source, position):
        frame = np.full((HEIGHT, WIDTH, 3), 200, dtype=np.uint8)
        for hand in range(2):
            row = 48 + 30 * np.sin(position * source[hand] + hand)
            column = 36 + 20 * np.cos(position * source[hand + 2])
            inside = (self.rows - row) ** 2 + (self.columns - column) ** 2 < 90
            frame[inside] = (180, 120 + 20 * hand, 90)
        return frame

    def generate_examples(self):
        started, number = time.monotonic(), 0
        while time.monotonic() - started < SECONDS:
            until = time.monotonic() + VIDEO_S
            source = np.random.default_rng(number).uniform(0.05, 0.3, 4)
            frames = [self.render(source, position) for position in range(FRAMES)]
            while time.monotonic() < until:
                position = number % FRAMES
                frames[position] = self.render(source, position)
            yield f"video-{number:06d}", {"video": frames}
            number += 1

    def download_and_prepare(self, folder):
        path = os.path.join(folder, "phoenix-train.arrow")
        writer = ArrowWriter(path, self.writer_batch_size)
        for key, example in self.generate_examples():
            writer.write(key, example)
        writer.finalize()
        return writer.num_examples, os.path.getsize(path)


def main():
    with tempfile.TemporaryDirectory() as folder:
        examples, size = PhoenixWeather().download_and_prepare(folder)
        print(f"{examples} examples, {size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
