"""A tomography pipeline: sections of methods, each of which reads from a data store and writes to the next."""

import tempfile
import weakref

import numpy as np

SECTIONS = 44
ANGLES, ROWS, COLUMNS = 180, 64, 256


class DataSetStoreWriter:
    """Takes the blocks of a section in memory, or in a file if they are too many."""

    def __init__(self, shape, limit=1 << 30):
        self.data = None if np.prod(shape) * 4 > limit else np.empty(shape, np.float32)
        self.file = tempfile.TemporaryFile() if self.data is None else None
        self._finalizer = weakref.finalize(self, self.finalize)

    def write_block(self, start, block):
        if self.data is None:
            raise NotImplementedError("blocks of this size")
        self.data[:, start : start + block.shape[1]] = block

    def make_reader(self):
        return DataSetStoreReader(self)

    def finalize(self):
        self.data = None
        if self.file is not None:
            self.file.close()


class DataSetStoreReader:
    def __init__(self, source):
        self.data = source.data
        source.finalize()
        self._finalizer = weakref.finalize(self, self.finalize)

    def blocks(self, rows=16):
        for start in range(0, self.data.shape[1], rows):
            yield start, self.data[:, start : start + rows]

    def finalize(self):
        self.data = None


def remove_stripes(block):
    mean = block.mean(axis=0)
    return block - (mean - np.convolve(mean.ravel(), np.ones(9) / 9, "same").reshape(mean.shape))


def ramp_filter(block):
    ramp = np.abs(np.fft.rfftfreq(block.shape[2]))
    return np.fft.irfft(np.fft.rfft(block, axis=2) * (0.2 + ramp), n=block.shape[2], axis=2)


def normalise(block):
    return (block - block.min()) / (block.max() - block.min() + 1e-6)


def denoise(block, iterations=14):
    """Total variation, by gradient descent."""
    image = block.copy()
    for _ in range(iterations):
        steps = [np.diff(image, axis=axis, append=0) for axis in (0, 2)]
        length = np.sqrt(steps[0] ** 2 + steps[1] ** 2 + 1e-4)
        for axis, step in zip((0, 2), steps):
            image += 0.02 * np.diff(step / length, axis=axis, prepend=0)
        image += 0.05 * (block - image)
    return image


def run_section(reader, methods):
    writer = DataSetStoreWriter(reader.data.shape)
    for start, block in reader.blocks():
        for method in methods:
            block = method(block)
        writer.write_block(start, block)
    return writer.make_reader()


def load():
    writer = DataSetStoreWriter((ANGLES, ROWS, COLUMNS))
    writer.write_block(0, np.random.default_rng(0).random((ANGLES, ROWS, COLUMNS), np.float32))
    return writer.make_reader()


def main():
    reader = load()
    for number in range(SECTIONS):
        methods = [remove_stripes, ramp_filter, denoise, normalise] if number % 2 else [denoise, normalise]
        reader = run_section(reader, methods)
        if number % 6 == 0:
            print(f"section {number}: mean {reader.data.mean():.4f}", flush=True)


if __name__ == "__main__":
    main()
