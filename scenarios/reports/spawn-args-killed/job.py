"""mp.spawn with the loaded samples among its arguments, in a cgroup that holds two of the four copies."""

import json

import torch
import torch.multiprocessing as mp


def train(rank, samples, steps):
    layer = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(layer.parameters(), 0.01)
    for step in range(steps):
        sample = samples[(step * 7 + rank) % len(samples)]
        x = torch.tensor([float(len(word)) for word in sample["words"]])
        loss = layer(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    line = json.dumps({"words": [f"word{n}" for n in range(16)], "label": 1})
    samples = [json.loads(line.replace("word1", f"word{n}")) for n in range(180_000)]
    mp.spawn(train, args=(samples, 40_000), nprocs=3)
