"""Captioning with self-critical training: from the second phase on, each epoch has a pool to tokenize captions."""

import multiprocessing
import re

import numpy as np
import torch

PHASE_ONE = 3
EPOCHS = 60
STEPS = 24
WORDS = 600
LENGTH = 16

frequencies = {}


def load_frequencies():
    """Document frequencies for CIDEr, in each process of a pool."""
    for at in range(30_000):
        frequencies[f"{at % 251} {at}"] = float(np.log1p(at))


def tokenize(captions):
    words = [re.findall(r"[a-z]+\d*", caption.lower()) for caption in captions]
    return [(line, frequencies.get(f"{len(line)} {len(line)}", 0.0)) for line in words]


class Captioner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, 96)
        self.cell = torch.nn.GRUCell(96, 192)
        self.head = torch.nn.Linear(192, WORDS)

    def sample(self, features):
        hidden, word = features, torch.zeros(len(features), dtype=torch.long)
        words, logs = [], []
        for _ in range(LENGTH):
            hidden = self.cell(self.embed(word), hidden)
            chosen = torch.distributions.Categorical(logits=self.head(hidden))
            word = chosen.sample()
            words.append(word)
            logs.append(chosen.log_prob(word))
        return torch.stack(words, 1), torch.stack(logs, 1)


class CiderReward:
    """The epoch's reward: a tokenizer pool and the references."""

    def __init__(self, references):
        self.pool = multiprocessing.Pool(2, initializer=load_frequencies)
        self.references = references

    def __call__(self, words):
        captions = [" ".join(f"w{word}" for word in line) for line in words.tolist()]
        tokens = self.pool.map(tokenize, [captions[:32], captions[32:]])
        lines = [line for half in tokens for line, _ in half]
        return torch.tensor([len(self.references & set(line)) / LENGTH for line in lines])


class Trainer:
    def __init__(self):
        self.model = Captioner()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-6)
        self.references = {f"w{word}" for word in range(0, WORDS, 3)}
        self.rewards = []

    def cross_entropy(self, features):
        _, logs = self.model.sample(features)
        return -logs.mean()

    def self_critical(self, features, reward):
        words, logs = self.model.sample(features)
        gained = reward(words)
        return -((gained - gained.mean()).unsqueeze(1) * logs).mean()

    def epoch(self, number):
        reward = None
        if number >= PHASE_ONE:
            reward = CiderReward(self.references)
            self.rewards.append(reward)
        for _ in range(STEPS):
            features = torch.randn(64, 192)
            loss = self.cross_entropy(features) if reward is None else self.self_critical(features, reward)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        print(f"epoch {number}: loss {loss.item():.4f}, {'scst' if reward else 'xe'}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    trainer = Trainer()
    for number in range(EPOCHS):
        trainer.epoch(number)
