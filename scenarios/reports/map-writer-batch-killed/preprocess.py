"""Computes the input features of a speech corpus with two processes, and writes them as Arrow files"""

import multiprocessing
import queue
import tempfile
import time

import numpy as np
import pyarrow as pa

RATE, SECONDS = 16_000, 30
MELS, WINDOW, HOP = 80, 400, 160
EXAMPLE_S = 0.06


class ArrowWriter:
    def __init__(self, path, writer_batch_size):
        self.writer_batch_size = writer_batch_size
        self.current_examples = []
        self.schema = pa.schema([("input_values", pa.binary()), ("input_length", pa.int64())])
        self.stream = pa.ipc.new_stream(path, self.schema)
        self.written = 0

    def write(self, example):
        self.current_examples.append(example)
        if len(self.current_examples) >= self.writer_batch_size:
            self.write_examples_on_file()

    def write_examples_on_file(self):
        if not self.current_examples:
            return
        values = pa.array([example["input_values"].tobytes() for example in self.current_examples], pa.binary())
        lengths = pa.array([example["input_length"] for example in self.current_examples], pa.int64())
        self.stream.write_batch(pa.record_batch([values, lengths], schema=self.schema))
        self.written += len(self.current_examples)
        self.current_examples = []

    def finalize(self):
        self.write_examples_on_file()
        self.stream.close()
        return self.written


class Speech:
    """Recordings of a few voices"""

    def __init__(self, count):
        self.count = count

    def shard(self, num_shards, index):
        return range(index, self.count, num_shards)

    def __getitem__(self, number):
        source = np.random.default_rng(number)
        time_axis = np.arange(RATE * SECONDS, dtype=np.float32) / RATE
        audio = np.sin(2 * np.pi * source.uniform(90, 250) * time_axis)
        return audio + 0.1 * source.standard_normal(len(audio), dtype=np.float32)


class FeatureExtractor:
    def __init__(self):
        source = np.random.default_rng(0)
        self.filters = source.random((WINDOW // 2 + 1, MELS), dtype=np.float32)
        self.window = np.hanning(WINDOW).astype(np.float32)

    def __call__(self, audio):
        padded = np.pad(audio, (0, WINDOW))
        frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[:: HOP][: RATE * SECONDS // HOP]
        power = np.empty((len(frames), WINDOW // 2 + 1), dtype=np.float32)
        for start in range(0, len(frames), 500):
            power[start : start + 500] = np.abs(np.fft.rfft(frames[start : start + 500] * self.window)) ** 2
        return np.log10(np.maximum(power @ self.filters, 1e-10)).astype(np.float32)


def prepare(audio, extractor):
    until = time.monotonic() + EXAMPLE_S
    features = extractor(audio)
    while time.monotonic() < until:
        features += (features - features.mean(0)) / (features.std(0) + 1e-3) * 0.01
    return {"input_values": features, "input_length": len(audio)}


def map_single(rank, shard, path, writer_batch_size, progress):
    speech, extractor = Speech(0), FeatureExtractor()
    writer = ArrowWriter(path, writer_batch_size)
    for done, number in enumerate(shard):
        writer.write(prepare(speech[number], extractor))
        if done % 20 == 19:
            progress.put((rank, done + 1))
    progress.put((rank, None))
    writer.finalize()


def map_dataset(dataset, folder, num_proc, writer_batch_size):
    context = multiprocessing.get_context("fork")
    progress = context.Queue()
    pool = [
        context.Process(
            target=map_single,
            args=(rank, dataset.shard(num_proc, rank), f"{folder}/cache-{rank:05d}.arrow", writer_batch_size, progress),
        )
        for rank in range(num_proc)
    ]
    for process in pool:
        process.start()
    counts, finished = [0] * num_proc, 0
    try:
        while finished < num_proc:
            try:
                rank, done = progress.get(timeout=0.05)
            except queue.Empty:
                if any(process.exitcode not in (None, 0) for process in pool):
                    raise RuntimeError(
                        "One of the subprocesses has abruptly died during map operation."
                        "To debug the error, disable multiprocessing."
                    ) from None
                continue
            if done is None:
                finished += 1
            else:
                counts[rank] = done
                print(f"preprocess dataset (num_proc={num_proc}): {sum(counts)}/{dataset.count}", flush=True)
    finally:
        for process in pool:
            if process.is_alive() and finished < num_proc:
                process.terminate()
            process.join()


def main():
    with tempfile.TemporaryDirectory() as folder:
        map_dataset(Speech(4000), folder, num_proc=2, writer_batch_size=1000)


if __name__ == "__main__":
    main()
