"""A text generation worker behind a pipe: the main process sends prompts and collects the continuations"""

import argparse
import hashlib
import time

import torch
import torch.multiprocessing as mp
from xlora import LanguageModel, XLoraModel

BATCH, WINDOW, VOCABULARY = 16, 128, 512


def work(connection):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = XLoraModel(LanguageModel(VOCABULARY)).eval()
    while (request := connection.recv()) is not None:
        prompts, count = request
        connection.send(model.generate(torch.tensor(prompts), count).tolist())


def prompts_of(number):
    """A batch of prompts, of bytes that depend on its number"""
    rows = []
    for row in range(BATCH):
        seed = hashlib.shake_128(f"{number}-{row}".encode()).digest(2 * WINDOW)
        rows.append([int.from_bytes(seed[i : i + 2], "little") % VOCABULARY for i in range(0, 2 * WINDOW, 2)])
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--new-tokens", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=27)
    arguments = parser.parse_args()
    ours, theirs = mp.Pipe()
    worker = mp.Process(target=work, args=(theirs,), name="generation")
    worker.start()
    until, number, tokens = time.monotonic() + arguments.seconds, 0, 0
    with open("continuations.txt", "w") as out:
        while time.monotonic() < until:
            ours.send((prompts_of(number), arguments.new_tokens))
            for row in ours.recv():
                out.write(" ".join(map(str, row)) + "\n")
                tokens += len(row)
            number += 1
            print(f"batch {number}: {tokens} tokens", flush=True)
    ours.send(None)
    worker.join()


if __name__ == "__main__":
    main()
