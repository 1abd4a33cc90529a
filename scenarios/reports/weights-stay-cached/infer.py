"""Answers one question with the weights of a file, which it maps"""

import argparse
import time

import numpy as np

LAYERS, WIDTH, SECONDS = 62, 1024, 2.6
WORDS = ("fn", "main", "print", "the", "merge", "lifetime", "array", "and", "owner", "of", "a", "key")


def answer(weights, question):
    hidden = np.zeros(WIDTH, np.float32)
    for place, letter in enumerate(question):
        hidden[(ord(letter) * 31 + place) % WIDTH] += 1
    words, until = [], time.monotonic() + SECONDS
    while time.monotonic() < until:
        for weight in weights:
            hidden = np.tanh(weight @ hidden)
        words.append(WORDS[int(np.abs(hidden[: len(WORDS)]).argmax())])
        hidden = np.roll(hidden, 7) * 3
    return words


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", dest="model", required=True)
    parser.add_argument("-p", dest="prompt", required=True)
    options = parser.parse_args()
    weights = np.memmap(options.model, np.float32, mode="r").reshape(LAYERS, WIDTH, WIDTH)
    words = answer(weights, options.prompt)
    print(f"{options.prompt}? {len(words)} words: {' '.join(words[:6])}", flush=True)


if __name__ == "__main__":
    main()
