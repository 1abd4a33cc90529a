"""Read the sound of each clip through a decoder process, and compute its features"""

import argparse
import gzip
import os
import subprocess
import time

import numpy as np
import torch

torch.set_num_threads(1)
RATE, SECONDS, HELD = 16000, 20, 28
CLIP_BUDGET_S = 0.16


def write_clips(folder, count=12):
    os.makedirs(folder, exist_ok=True)
    generator = np.random.default_rng(2)
    t = np.arange(RATE * HELD) / RATE
    paths = []
    for number in range(count):
        wave = np.sin(t * 2 * np.pi * (110 + 40 * number)) * 8000 + generator.normal(0, 900, len(t))
        path = os.path.join(folder, f"clip{number:03d}.pcm.gz")
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(wave.astype(np.int16).tobytes())
        paths.append(path)
    return paths


class FFMPEG_AudioReader:
    """Samples of a file, as its decoder writes them to a pipe"""

    def __init__(self, filename, fps=RATE, nbytes=2):
        self.filename, self.fps, self.nbytes = filename, fps, nbytes
        self.proc = None
        self.initialize()

    def initialize(self):
        self.close_proc()
        command = ["gzip", "-dc", self.filename]
        self.proc = subprocess.Popen(
            command, bufsize=0, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def read_chunk(self, samples):
        wanted, parts = samples * self.nbytes, []
        while wanted > 0:
            data = self.proc.stdout.read(wanted)
            if not data:
                raise OSError(f"{self.filename}: the decoder wrote too few samples")
            parts.append(data)
            wanted -= len(data)
        return np.frombuffer(b"".join(parts), dtype=np.int16).astype(np.float32) / 32768

    def close_proc(self):
        if self.proc is not None and not self.proc.stdout.closed:
            self.proc.terminate()
            self.proc.stdout.close()


class AudioFileClip:
    def __init__(self, filename):
        self.filename = filename
        self.reader = FFMPEG_AudioReader(filename)
        self.duration = float(HELD)

    def subclip(self, seconds):
        return torch.from_numpy(self.reader.read_chunk(int(seconds * self.reader.fps)))

    def close(self):
        self.reader.close_proc()


def mel_filters(bins=513, mels=64):
    centers = torch.linspace(0, bins - 1, mels + 2)
    grid = torch.arange(bins).float()[None]
    rise = (grid - centers[:-2, None]) / (centers[1:-1] - centers[:-2])[:, None]
    fall = (centers[2:, None] - grid) / (centers[2:] - centers[1:-1])[:, None]
    return torch.clamp(torch.minimum(rise, fall), min=0)


def features(wave, filters, generator):
    """The mean of log-mel spectra over as many random gains and shifts as the budget of a clip allows"""
    window, total, count = torch.hann_window(1024), None, 0
    until = time.monotonic() + CLIP_BUDGET_S
    while time.monotonic() < until:
        gain, shift = 0.5 + torch.rand(1, generator=generator), int(torch.randint(1, 4000, (1,), generator=generator))
        spectrum = torch.stft(torch.roll(wave, shift) * gain, 1024, 512, window=window, return_complex=True)
        mel = torch.log1p(filters @ spectrum.abs().square())
        total, count = mel if total is None else total + mel, count + 1
    return (total / count).mean(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clips", required=True)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    paths = write_clips(arguments.clips)
    captions = [(paths[number % len(paths)], f"caption {number}") for number in range(900)]
    filters, generator = mel_filters(), torch.Generator().manual_seed(4)
    dataset = []
    for number, (path, caption) in enumerate(captions, 1):
        clip = AudioFileClip(path)
        mel = features(clip.subclip(SECONDS), filters, generator)
        clip.close()
        dataset.append({"clip": clip, "caption": caption, "mel": mel})
        if number % 20 == 0:
            print(f"{number} of {len(captions)} clips", flush=True)
    np.save(arguments.out, torch.stack([entry["mel"] for entry in dataset]).numpy())


if __name__ == "__main__":
    main()
