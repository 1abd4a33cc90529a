"""Trains a policy on the batches whose paths come in on a pipe"""

import os
import sys

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
WORDS, WIDTH, ROWS, LENGTH = 50_000, 64, 16, 256


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.mix = nn.Embedding(WORDS, WIDTH), nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, tokens):
        hidden, _ = self.mix(self.embed(tokens))
        return nn.functional.logsigmoid(self.score(hidden)[..., 0])


def train(model, optimizer, path, random):
    with np.load(path) as batch:
        tokens, logprobs, advantages = batch["tokens"], batch["logprobs"], batch["advantages"]
    os.remove(path)
    for rows in np.array_split(random.permutation(len(tokens)), len(tokens) // ROWS)[:4]:
        start = int(random.integers(0, tokens.shape[1] - LENGTH))
        seen = torch.from_numpy(tokens[rows, start : start + LENGTH]).long()
        old = torch.from_numpy(logprobs[rows, start : start + LENGTH])
        ratio = (model(seen) - old).clamp(-2, 2).exp()
        gain = torch.from_numpy(advantages[rows])[:, None]
        loss = -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model, random = Policy(), np.random.default_rng(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for number, line in enumerate(sys.stdin, 1):
        loss = train(model, optimizer, line.strip(), random)
        print(f"trained on {number} batches, loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
