"""Monthly means of the brightness temperatures of an infrared sounder, orbit by orbit"""

import argparse
import os
import queue
import threading
import time
import zlib

import numpy as np

CHANNELS = 24
LINES, PIXELS = 900, 56
NEW_CHANNEL_EVERY_S = 2.0


class ChannelReader:
    """Decodes the granules of a channel in a thread of its own"""

    def __init__(self, number, granules):
        self.number, self.granules = number, granules
        self.requests, self.decoded = queue.Queue(2), queue.Queue(2)
        self.thread = threading.Thread(target=self.read, name=f"channel-{number}", daemon=True)
        self.thread.start()

    def read(self):
        while (orbit := self.requests.get()) is not None:
            with open(self.granules[orbit % len(self.granules)], "rb") as file:
                counts = np.frombuffer(zlib.decompress(file.read()), dtype=np.uint16)
            self.decoded.put(counts.reshape(LINES, PIXELS) * np.float32(0.01) + np.float32(self.number))


class Means:
    def __init__(self):
        self.sums = np.zeros((CHANNELS, PIXELS))
        self.squares = np.zeros((CHANNELS, PIXELS))
        self.count = np.zeros(CHANNELS)
        self.covariance = np.zeros((PIXELS, PIXELS))

    def add(self, channel, temperature):
        self.sums[channel] += temperature.mean(axis=0)
        self.squares[channel] += (temperature**2).mean(axis=0)
        self.count[channel] += 1
        anomaly = temperature - temperature.mean(axis=0)
        self.covariance += anomaly.T @ anomaly / len(anomaly)


def write_granules(folder):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(7)
    paths = []
    for number in range(6):
        counts = (20000 + 900 * rng.standard_normal((LINES, PIXELS))).astype(np.uint16)
        paths.append(os.path.join(folder, f"granule_{number}.bin"))
        with open(paths[-1], "wb") as file:
            file.write(zlib.compress(counts.tobytes(), 6))
    return paths


def destripe(temperature):
    """Takes the stripes of the scan mirror away, by its spectrum"""
    spectrum = np.fft.rfft2(temperature)
    spectrum[::60, 1:4] *= 0.1
    return np.fft.irfft2(spectrum, s=temperature.shape)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--orbits", type=int, default=400)
    arguments = parser.parse_args()
    granules = write_granules("granules")
    readers, means = [], Means()
    started = time.monotonic()
    for orbit in range(100 * arguments.orbits):
        elapsed = time.monotonic() - started
        if elapsed > 75:
            break
        if len(readers) < CHANNELS and elapsed >= NEW_CHANNEL_EVERY_S * len(readers):
            readers.append(ChannelReader(len(readers), granules))
            print(f"orbit {orbit}: channel {len(readers)} of {CHANNELS}", flush=True)
        for reader in readers:
            reader.requests.put(orbit)
        for reader in readers:
            temperature = reader.decoded.get()
            for _ in range(3):
                temperature = destripe(temperature)
            means.add(reader.number, temperature)
    mean = means.sums.sum(axis=1) / np.maximum(means.count, 1)
    print("means", np.round(mean / PIXELS, 2), flush=True)


if __name__ == "__main__":
    main()
