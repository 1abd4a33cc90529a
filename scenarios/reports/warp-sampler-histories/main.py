"""Sequential recommendation; batches come from sampler processes that share the histories of all users by fork"""

import argparse
import random
import time
from collections import defaultdict
from multiprocessing import get_context

import numpy as np
import torch

context = get_context("fork")


def read_histories(path):
    histories = defaultdict(list)
    with open(path) as lines:
        for line in lines:
            user, item = line.split()
            histories[int(user)].append(int(item))
    return dict(histories)


def produce(histories, items, batch, maxlen, queue, seed):
    picker = random.Random(seed)
    users = np.arange(1, len(histories) + 1)
    while True:
        np.random.default_rng(picker.randrange(1 << 30)).shuffle(users)
        for start in range(0, len(users) - batch, batch):
            rows = np.zeros((3, batch, maxlen), dtype=np.int64)
            for row, user in enumerate(users[start : start + batch]):
                history = histories[int(user)]
                seen = set(history)
                column = maxlen - 1
                for previous, following in zip(reversed(history[:-1]), reversed(history[1:])):
                    if column < 0:
                        continue
                    negative = picker.randrange(1, items)
                    while negative in seen:
                        negative = picker.randrange(1, items)
                    rows[:, row, column] = previous, following, negative
                    column -= 1
            queue.put(rows)


class Sampler:
    def __init__(self, histories, items, batch, maxlen, workers):
        self.queue = context.Queue(maxsize=workers * 10)
        arguments = (histories, items, batch, maxlen, self.queue)
        self.processes = [
            context.Process(target=produce, args=(*arguments, seed), daemon=True) for seed in range(workers)
        ]
        for process in self.processes:
            process.start()

    def next_batch(self):
        return self.queue.get()

    def close(self):
        for process in self.processes:
            process.terminate()
            process.join()


class Model(torch.nn.Module):
    def __init__(self, items, maxlen, width=48):
        super().__init__()
        self.items = torch.nn.Embedding(items + 1, width, padding_idx=0, sparse=True)
        self.positions = torch.nn.Parameter(torch.zeros(maxlen, width))
        self.block = torch.nn.TransformerEncoderLayer(width, 2, width * 2, dropout=0.0, batch_first=True)

    def forward(self, sequence, positive, negative):
        hidden = self.block(self.items(sequence) + self.positions)
        good = (hidden * self.items(positive)).sum(-1)
        bad = (hidden * self.items(negative)).sum(-1)
        return (torch.nn.functional.softplus(-good) + torch.nn.functional.softplus(bad))[positive > 0].mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--maxlen", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=38)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    histories = read_histories(arguments.dataset)
    print(f"{len(histories)} users, {sum(map(len, histories.values()))} clicks", flush=True)
    sampler = Sampler(histories, 90_000, 96, arguments.maxlen, workers=3)
    model = Model(90_000, arguments.maxlen)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    started, step = time.monotonic(), 0
    while time.monotonic() - started < arguments.seconds:
        sequence, positive, negative = torch.from_numpy(sampler.next_batch())
        optimizer.zero_grad()
        loss = model(sequence, positive, negative)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    print(f"{step} steps", flush=True)
    sampler.close()


if __name__ == "__main__":
    main()
