"""The scan of hyperparameters: each trial runs in a process forked for it, which ends with the trial"""

import multiprocessing
import random
import sys
import time

import data
import torch
import trial

torch.set_num_threads(1)
SECONDS = 26.0
SPACE = {"width": (896, 1088, 1280), "layers": (3, 4), "rate": (1e-4, 3e-4, 1e-3)}


def suggest(number, history, source):
    """Mostly near the best choice so far, otherwise anywhere"""
    choice = {name: source.choice(values) for name, values in SPACE.items()}
    if history and source.random() < 0.5:
        kept = source.choice(list(SPACE))
        choice[kept] = min(history, key=lambda pair: pair[0])[1][kept]
    return {"number": number, **choice}


def child(connection, tables, choice):
    connection.send(trial.run(tables, data.GRID, choice))
    connection.close()


def run_in_fork(context, tables, choice):
    mine, other = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(other, tables, choice), name=f"trial-{choice['number']}")
    process.start()
    other.close()
    try:
        loss = mine.recv()
    except EOFError:
        loss = float("inf")
    process.join()
    mine.close()
    return loss


def main():
    tables, context, source = data.load(), multiprocessing.get_context("fork"), random.Random(7)
    history, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        choice = suggest(len(history), history, source)
        loss = run_in_fork(context, tables, choice)
        history.append((loss, choice))
        print(f"trial {choice['number']}: width {choice['width']}, {choice['layers']} layers, {loss:.4f}", flush=True)
    print(f"best of {len(history)}: {min(history, key=lambda pair: pair[0])}", flush=True)
    return int(min(loss for loss, _ in history) == float("inf"))


if __name__ == "__main__":
    sys.exit(main())
