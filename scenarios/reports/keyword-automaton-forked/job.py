"""Finds the keywords of a catalogue in texts, and scores the texts by the shelves of what they mention"""

import gc
import multiprocessing
import time

import numpy as np
import torch
from automaton import Automaton
from torch import nn

VOCABULARY, KEYWORDS, SHELVES = 5000, 700_000, 256
TOPICS, TEXTS, PROCESSES, TEXT_S = 200, 460, 2, 0.105


def catalogue():
    """The keys of the keywords, ascending"""
    generator = np.random.default_rng(2)
    keys = np.unique(generator.integers(0, VOCABULARY**3, KEYWORDS + 2000))
    return keys[: KEYWORDS // TOPICS * TOPICS]


def build(keys):
    automaton = Automaton(VOCABULARY)
    for number, key in enumerate(keys.tolist()):
        first, rest = divmod(key, VOCABULARY**2)
        second, third = divmod(rest, VOCABULARY)
        shelf = number * 7919 % SHELVES
        phrase = f"term{first:04d} term{second:04d} term{third:04d}"
        automaton.add_word(key, (number + 1000, shelf, phrase, f"/catalogue/shelf-{shelf:03d}/entry-{number:07d}.html"))
    automaton.make_automaton()
    return automaton


def text_of(keys, number):
    """A text about one topic, as tokens"""
    generator = np.random.default_rng(number)
    topic = generator.integers(TOPICS)
    size = len(keys) // TOPICS
    chosen = generator.permutation(keys[topic * size : (topic + 1) * size])
    return np.stack([chosen // VOCABULARY**2, chosen // VOCABULARY % VOCABULARY, chosen % VOCABULARY], 1).reshape(-1)


@torch.inference_mode()
def search(automaton, tasks, results):
    network = nn.Sequential(nn.Linear(SHELVES, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    while (number := tasks.get()) is not None:
        until = time.monotonic() + TEXT_S
        counts, longest = torch.zeros(SHELVES), ""
        for _, (_, shelf, phrase, _) in automaton.iter(text_of(automaton.keys, number)):
            counts[shelf] += 1
            longest = max(longest, phrase, key=len)
        while True:
            score = network(counts / counts.sum().clamp(min=1)).item()
            if time.monotonic() > until:
                break
        results.put((number, int(counts.sum()), longest, score))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    automaton = build(catalogue())
    print(f"{len(automaton.values)} keywords", flush=True)
    gc.collect()
    gc.freeze()
    context = multiprocessing.get_context("fork")
    tasks, results = context.SimpleQueue(), context.SimpleQueue()
    processes = [context.Process(target=search, args=(automaton, tasks, results)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for number in range(TEXTS):
        tasks.put(number)
    for _ in processes:
        tasks.put(None)
    total = 0
    for done in range(1, TEXTS + 1):
        _, found, _, _ = results.get()
        total += found
        if done % 40 == 0:
            print(f"{done} texts, {total} keywords found", flush=True)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
