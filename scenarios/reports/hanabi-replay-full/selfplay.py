"""Self-play of a card game: actors play whole games of different lengths, the learner keeps the newest of them"""

import collections
import multiprocessing
import queue
import random
import time

import numpy as np
import torch
from torch import nn

SECONDS, CAPACITY, ACTORS, OBSERVATION, HIDDEN, GAME_S = 27.0, 230, 2, 838, 512, 0.04


def play(generator, deck, seconds):
    """One game; the belief about the cards is refined within the time for a game"""
    length = int(generator.integers(30, 72))
    belief = np.full((25, deck.shape[1]), 1 / 25, dtype=np.float32)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        belief = belief * np.exp(deck * generator.standard_normal(dtype=np.float32) * 0.1)
        belief /= belief.sum(0)
    return {
        "observation": generator.random((length, OBSERVATION), dtype=np.float32),
        "hidden": generator.standard_normal((length, 2, HIDDEN), dtype=np.float32),
        "action": generator.integers(0, 20, length),
        "reward": np.clip(generator.standard_normal(length) + belief.max(), 0, None).astype(np.float32),
    }


def actor(number, games, stop):
    games.cancel_join_thread()
    generator = np.random.default_rng(number)
    deck = generator.random((25, 400), dtype=np.float32)
    while not stop.is_set():
        game = play(generator, deck, GAME_S)
        while not stop.is_set():
            try:
                games.put(game, timeout=0.2)
                break
            except queue.Full:
                continue


class Replay:
    def __init__(self, capacity):
        self.games, self.frames = collections.deque(), 0
        self.capacity = capacity

    def add(self, game):
        self.games.append(game)
        self.frames += len(game["action"])
        while len(self.games) > self.capacity:
            self.frames -= len(self.games.popleft()["action"])

    def sample(self, source, count, steps=20):
        chosen = source.sample(self.games, count)
        cut = {name: np.stack([game[name][:steps] for game in chosen]) for name in ("observation", "action", "reward")}
        return {name: torch.from_numpy(values) for name, values in cut.items()}


def learn(network, optimizer, batch):
    values = network(batch["observation"]).gather(2, batch["action"].unsqueeze(2)).squeeze(2)
    loss = nn.functional.smooth_l1_loss(values[:, :-1], batch["reward"][:, 1:] + 0.99 * values[:, 1:].detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    games, stop = multiprocessing.Queue(8), multiprocessing.Event()
    actors = [multiprocessing.Process(target=actor, args=(number, games, stop)) for number in range(ACTORS)]
    for process in actors:
        process.start()
    network = nn.Sequential(nn.Linear(OBSERVATION, 256), nn.ReLU(), nn.Linear(256, 20))
    optimizer = torch.optim.Adam(network.parameters(), lr=6e-5)
    replay, source, started, played, loss = Replay(CAPACITY), random.Random(0), time.monotonic(), 0, 0.0
    while time.monotonic() - started < SECONDS:
        replay.add(games.get())
        played += 1
        if played >= 20:
            loss = learn(network, optimizer, replay.sample(source, 8))
        if played % 100 == 0:
            print(f"{played} games, {replay.frames} frames in replay, loss {loss:.4f}", flush=True)
    stop.set()
    for process in actors:
        process.join()


if __name__ == "__main__":
    main()
