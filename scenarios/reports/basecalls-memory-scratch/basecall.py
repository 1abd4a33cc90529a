"""Calls the bases of nanopore reads; the blocks' scores go to temporary files, and are decoded in order at the end"""

import argparse
import os
import tempfile
import time

import numpy as np
import torch

torch.set_num_threads(1)
SECONDS = 50.0
READS, SAMPLES, STATES = 64, 4096, 6


class Caller(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv1d(1, 32, 9, padding=4), torch.nn.SiLU(),
            torch.nn.Conv1d(32, 96, 9, stride=4, padding=4), torch.nn.SiLU(),
            torch.nn.Conv1d(96, STATES, 1),
        )

    def forward(self, signal):
        return self.layers(signal).log_softmax(1)


def read_blocks(generator):
    """Blocks of reads as the device gives them: levels of random length, and noise"""
    while True:
        levels = generator.standard_normal((READS, SAMPLES // 8), dtype=np.float32)
        signal = np.repeat(levels, 8, axis=1) + 0.1 * generator.standard_normal((READS, SAMPLES), dtype=np.float32)
        yield torch.from_numpy(signal[:, None])


def decode(scores):
    states = scores.argmax(1)
    moved = np.diff(states, axis=1, prepend=-1) != 0
    return ["".join("-ACGTN"[state] for state in row[move]) for row, move in zip(states, moved)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    output = parser.parse_args().output
    caller, parts = Caller().eval(), []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="scores-") as scratch:
        with torch.inference_mode():
            for number, signal in enumerate(read_blocks(np.random.default_rng(8))):
                if time.monotonic() - started > SECONDS:
                    break
                parts.append(os.path.join(scratch, f"block-{number:05d}.npy"))
                np.save(parts[-1], caller(signal).numpy())
                if number % 25 == 0:
                    print(f"block {number} called", flush=True)
        with open(output, "w") as file:
            for part in parts:
                for number, bases in enumerate(decode(np.load(part))):
                    file.write(f">{os.path.basename(part)}-{number}\n{bases}\n")
                os.remove(part)
    print(f"{len(parts)} blocks decoded", flush=True)


if __name__ == "__main__":
    main()
