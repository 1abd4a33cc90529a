"""Bioacoustics: the first seconds of every recording of a night become the reference clips of a classifier."""

import os
import tempfile
import time
import wave

import numpy as np

SECONDS = 22.0
RATE, MINUTES = 22_050, 0.35
RECORDERS = 12


def write_recordings(folder):
    rng = np.random.default_rng(3)
    samples = int(RATE * 60 * MINUTES)
    for recorder in range(RECORDERS):
        call = np.sin(np.arange(samples) * (0.3 + 0.02 * recorder)) * (rng.random(samples) > 0.5)
        with wave.open(os.path.join(folder, f"recorder_{recorder:02d}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes((call * 8000).astype(np.int16).tobytes())


def load(path):
    with wave.open(path, "rb") as file:
        frames = file.readframes(file.getnframes())
        return np.frombuffer(frames, np.int16).astype(np.float32) / 32768, file.getframerate()


def spectrogram(s, nperseg, hop=64):
    frames = np.lib.stride_tricks.sliding_window_view(s, nperseg)[::hop] * np.hanning(nperseg).astype(np.float32)
    return np.abs(np.fft.rfft(frames, axis=1))


def acoustic_complexity(s):
    total = 0.0
    for nperseg in (256, 512):
        power = spectrogram(s, nperseg)
        total += float((np.abs(np.diff(power, axis=0)).sum(axis=0) / (power.sum(axis=0) + 1e-9)).sum())
    return total


def trim(s, fs, start, stop):
    return s[int(start * fs) : int(stop * fs)]


class Night:
    """The clips and the indices of a night's recordings, in the order in which the recorders wrote them."""

    def __init__(self):
        self.clips, self.complexity = [], []

    def add(self, path):
        s, fs = load(path)
        self.complexity.append(acoustic_complexity(s))
        self.clips.append(trim(s, fs, 0, 1.5))

    def template(self):
        return np.mean([clip[:1024] for clip in self.clips], axis=0)


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_recordings(folder)
        night, number, end = Night(), 0, time.monotonic() + SECONDS
        while time.monotonic() < end:
            night.add(os.path.join(folder, f"recorder_{number % RECORDERS:02d}.wav"))
            number += 1
            if number % 25 == 0:
                print(f"{number} recordings, complexity {np.mean(night.complexity):.1f}", flush=True)
        print(f"template of {len(night.clips)} clips: {night.template().std():.4f}")


if __name__ == "__main__":
    main()
