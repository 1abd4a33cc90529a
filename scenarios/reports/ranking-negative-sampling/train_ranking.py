"""A ranking model for a shop: each sale with a negative item that its user did not buy"""

import random
import time

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
USERS, ITEMS, SALES, BATCH = 20_000, 240, 400_000, 1024
RESELLER = 9_000


def read_sales():
    generator = np.random.default_rng(8)
    users = np.sort(generator.integers(0, USERS, SALES))
    items = (generator.exponential(40, SALES) + users % 50).astype(np.int64) % ITEMS
    users = np.concatenate([users, np.full(ITEMS, RESELLER)])
    items = np.concatenate([items, np.arange(ITEMS)])
    order = np.argsort(users, kind="stable")
    return users[order], items[order]


class NegativeSampler:
    def __init__(self, users, items):
        self.user_consumed = {}
        for user, item in zip(users.tolist(), items.tolist()):
            self.user_consumed.setdefault(user, set()).add(item)
        self.random = random.Random(42)

    def sample(self, users):
        negatives = []
        for user in users.tolist():
            consumed = self.user_consumed[user]
            item = self.random.randrange(ITEMS)
            while item in consumed:
                item = self.random.randrange(ITEMS)
            negatives.append(item)
        return torch.tensor(negatives)


class YouTubeRanking(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.users = nn.Embedding(USERS, size)
        self.items = nn.Embedding(ITEMS, size)
        self.layers = nn.Sequential(
            nn.Linear(2 * size, 384), nn.ReLU(), nn.Linear(384, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, users, items):
        return self.layers(torch.cat([self.users(users), self.items(items)], 1)).squeeze(1)


def main():
    torch.manual_seed(0)
    users, items = read_sales()
    sampler = NegativeSampler(users, items)
    model = YouTubeRanking()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    started = time.monotonic()
    for step, start in enumerate(range(0, len(users), BATCH), 1):
        user = torch.from_numpy(users[start : start + BATCH])
        item = torch.from_numpy(items[start : start + BATCH])
        negative = sampler.sample(user)
        both = torch.cat([model(user, item), model(user, negative)])
        labels = torch.cat([torch.ones(len(user)), torch.zeros(len(user))])
        loss = nn.functional.binary_cross_entropy_with_logits(both, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}, {time.monotonic() - started:.1f} s", flush=True)
    print("trained", flush=True)


if __name__ == "__main__":
    main()
