"""Trains a session recommender with two ranks, and evaluates it after each epoch"""

import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from session_dataset import SessionDataset
from torch import nn

EPOCH_S, EPOCHS, BATCH = 17.0, 2, 256


class NARM(nn.Module):
    def __init__(self, n_items, size=64):
        super().__init__()
        self.item_embedding = nn.Embedding(n_items, size, padding_idx=0)
        self.gru = nn.GRU(size, 96, batch_first=True)
        self.output = nn.Linear(192, size)

    def forward(self, sessions):
        states, last = self.gru(self.item_embedding(sessions))
        weights = (states * last[-1].unsqueeze(1)).sum(2, keepdim=True).softmax(1)
        found = self.output(torch.cat([(states * weights).sum(1), last[-1]], 1))
        return found @ self.item_embedding.weight.T


def train_epoch(model, optimizer, data, rank, world_size):
    started, step, loss = time.monotonic(), 0, None
    while True:
        passed = torch.tensor([time.monotonic() - started])
        dist.all_reduce(passed, op=dist.ReduceOp.MAX)
        if passed.item() > EPOCH_S:
            return step, loss.item()
        sessions, targets = data.batch(step * world_size + rank, BATCH)
        loss = nn.functional.cross_entropy(model(sessions), targets)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world_size
        optimizer.step()
        step += 1


@torch.no_grad()
def evaluate(model, data, rank, world_size):
    hits = torch.zeros(2)
    for number in range(rank, len(data) // BATCH, world_size):
        sessions, targets = data.batch(number, BATCH)
        top = model(sessions).topk(20, dim=1).indices
        hits += torch.tensor([float((top == targets.unsqueeze(1)).any(1).sum()), float(len(targets))])
    dist.all_reduce(hits)
    return float(hits[0] / hits[1])


def run(rank, world_size, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)
    torch.manual_seed(2)
    train = SessionDataset("train", 60_000)
    valid = SessionDataset("valid", 8_000, item_number=train.item_number)
    model = NARM(train.n_items)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        steps, loss = train_epoch(model, optimizer, train, rank, world_size)
        print(f"rank {rank} epoch {epoch}: {steps} steps, loss {loss:.3f}", flush=True)
        recall = evaluate(model, valid, rank, world_size)
        print(f"rank {rank} epoch {epoch}: recall@20 {recall:.4f}", flush=True)
    dist.destroy_process_group()


def main():
    os.environ["OMP_NUM_THREADS"] = "1"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(run, args=(2, port), nprocs=2, join=True)


if __name__ == "__main__":
    main()
