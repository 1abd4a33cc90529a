"""A learner and its workers: episodes come over pipes, and batches are drawn from the last episodes"""

import bz2
import multiprocessing
import os
import pickle
import random
import time
import warnings
from collections import deque
from multiprocessing.connection import wait

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
ARGS = {"maximum_episodes": 1_000_000, "workers": 2, "memory_mb": 130, "seconds": 30.0, "batch": 1}
STEPS, BOARD = 48, 8192


def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def play(rng, weights):
    boards = rng.integers(0, 256, (STEPS, BOARD), np.uint8)
    moments, score = [], 0.0
    for turn in range(STEPS):
        policy = boards[turn, :64].astype(np.float32) / 255 @ weights
        action = int(np.argmax(policy + rng.gumbel(size=len(policy))))
        score += 1.0 if boards[turn, action] > 127 else -1.0
        moments.append({"observation": boards[turn], "action": action, "reward": score / STEPS})
    return {"steps": STEPS, "outcome": score, "moment": bz2.compress(pickle.dumps(moments))}


def work(connection, number):
    rng, weights = np.random.default_rng(number), np.zeros((64, 8), np.float32)
    try:
        while True:
            connection.send(play(rng, weights))
            received = connection.recv()
            if received is not None:
                weights = received
    except (EOFError, OSError):
        pass


class Learner:
    def __init__(self):
        self.args, self.flags = ARGS, set()
        self.episodes = deque()
        self.model = nn.Sequential(nn.Linear(BOARD, 128), nn.ReLU(), nn.Linear(128, 8))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.before = rss()
        self.steps = 0

    def feed_episodes(self, episodes):
        mem_percent = 100 * (rss() - self.before) / (self.args["memory_mb"] * 2**20)
        mem_ok = mem_percent <= 95
        maximum_episodes = self.args["maximum_episodes"] if mem_ok else len(self.episodes)
        if not mem_ok and "memory_over" not in self.flags:
            warnings.warn(f"memory usage {mem_percent:.1f}% with buffer size {len(self.episodes)}")
            self.flags.add("memory_over")
        self.episodes.extend(episodes)
        while len(self.episodes) > maximum_episodes:
            self.episodes.popleft()

    def train(self):
        observations, actions, rewards = [], [], []
        for _ in range(self.args["batch"]):
            episode = self.episodes[random.randrange(len(self.episodes))]
            for moment in pickle.loads(bz2.decompress(episode["moment"])):
                observations.append(moment["observation"])
                actions.append(moment["action"])
                rewards.append(moment["reward"])
        logits = self.model(torch.from_numpy(np.stack(observations)).float() / 255)
        chosen = nn.functional.log_softmax(logits, dim=1)[torch.arange(len(actions)), torch.tensor(actions)]
        loss = -(chosen * torch.tensor(rewards)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss.item()


def main():
    random.seed(0)
    torch.manual_seed(0)
    connections, workers = [], []
    for number in range(ARGS["workers"]):
        ours, theirs = multiprocessing.Pipe()
        worker = multiprocessing.Process(target=work, args=(theirs, number), daemon=True)
        worker.start()
        theirs.close()
        connections.append(ours)
        workers.append(worker)
    learner = Learner()
    begin, filled, updates = time.monotonic(), None, np.random.default_rng(9)
    while True:
        passed = time.monotonic() - begin
        if filled is None and "memory_over" in learner.flags:
            filled = passed
        if filled is not None and passed > max(ARGS["seconds"], 2.4 * filled):
            break
        for connection in wait(connections, timeout=0 if learner.episodes else None):
            learner.feed_episodes([connection.recv()])
            fresh = learner.steps % 20 == 0
            connection.send(updates.standard_normal((64, 8)).astype(np.float32) if fresh else None)
        loss = learner.train()
        if learner.steps % 50 == 0:
            print(f"steps {learner.steps} episodes {len(learner.episodes)} loss {loss:.4f}", flush=True)
    for worker in workers:
        worker.terminate()
        worker.join()


if __name__ == "__main__":
    main()
