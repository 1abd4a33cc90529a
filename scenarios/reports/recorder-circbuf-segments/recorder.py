"""Sets up a recorder for each channel of a system, and listens on it for a moment before the next one"""

import time

import numpy as np

import circbuf

CHANNELS, CHANNEL_S = 260, 0.12
RATE, ITEMS, SAMPLES, TAPS = 2_400_000, 8192, 4096, 33


class Shift:
    """Moves a frequency to zero"""

    def __init__(self, offset):
        self.step, self.phase = -2 * np.pi * offset / RATE, 0.0
        self.output = circbuf.CircularBuffer(ITEMS)

    def work(self, samples):
        angles = self.phase + self.step * np.arange(len(samples))
        self.phase = float((angles[-1] + self.step) % (2 * np.pi))
        self.output.write(samples * np.exp(1j * angles))
        return self.output.take(len(samples))


class Filter:
    """A low pass"""

    def __init__(self, width):
        places = np.arange(TAPS) - TAPS // 2
        taps = np.sinc(width * places) * np.hamming(TAPS)
        self.taps = (taps / taps.sum()).astype(np.float32)
        self.output = circbuf.CircularBuffer(ITEMS)

    def work(self, samples):
        self.output.write(np.convolve(samples, self.taps, "same"))
        return self.output.take(len(samples))


class Demodulator:
    """The change of the phase from sample to sample"""

    def __init__(self):
        self.last = np.complex64(0)
        self.output = circbuf.CircularBuffer(ITEMS)

    def work(self, samples):
        before = np.concatenate([[self.last], samples[:-1]])
        self.last = samples[-1].copy()
        self.output.write(np.angle(samples * before.conj()))
        return self.output.take(len(samples))


class Recorder:
    def __init__(self, frequency):
        self.frequency = frequency
        front = [Filter(1 / 2**stage) for stage in range(1, 6)]
        audio = [Filter(1 / 2**stage) for stage in range(2, 5)]
        self.blocks = [Shift(frequency), *front, Demodulator(), *audio]

    def run(self, samples):
        for block in self.blocks:
            samples = block.work(samples)
        return float(np.abs(samples).mean())


def main():
    generator = np.random.default_rng(2)
    recorders = []
    for number in range(CHANNELS):
        recorders.append(Recorder(12_500 * (number - CHANNELS // 2)))
        until, level = time.monotonic() + CHANNEL_S, 0.0
        while time.monotonic() < until:
            noise = generator.standard_normal((2, SAMPLES), np.float32)
            samples = (noise[0] + 1j * noise[1]).astype(np.complex64)
            recorders[-1].run(samples)
            level = recorders[int(generator.integers(len(recorders)))].run(samples)
        if number % 20 == 0:
            print(f"{number + 1} channels, squelch {level:.4f}", flush=True)
    print("all channels are set up", flush=True)


if __name__ == "__main__":
    main()
