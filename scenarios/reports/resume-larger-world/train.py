"""Supervised fine-tuning on tokens, with as many ranks as the launcher starts."""

import argparse
import time

import torch
import torch.distributed as dist
from ckpt import CheckpointManager
from torch import nn

VOCABULARY, WIDTH, LENGTH, BATCH = 6000, 384, 48, 4


class StatefulLoader:
    """Reads every world-size-th sample, and knows where it is."""

    def __init__(self, rank, world):
        self.rank, self.world, self.step = rank, world, 0

    def __next__(self):
        generator = torch.Generator().manual_seed(self.step * self.world + self.rank)
        self.step += 1
        start = torch.randint(VOCABULARY, (BATCH, 1), generator=generator)
        return (start + 11 * torch.arange(LENGTH + 1)) % VOCABULARY

    def state_dict(self):
        return {"step": self.step, "world": self.world}

    def load_state_dict(self, state):
        self.step = state["step"]


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.recurrent = nn.GRU(WIDTH, WIDTH, num_layers=2, batch_first=True)

    def forward(self, tokens):
        return self.recurrent(self.embed(tokens))[0] @ self.embed.weight.T


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-dir", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = Language()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = StatefulLoader(dist.get_rank(), dist.get_world_size())
    manager, step = CheckpointManager(arguments.output_dir), 0
    if arguments.resume:
        step = manager.latest()
        manager.load(model, optimizer, loader, step)
    done, end = torch.zeros(1), time.monotonic() + arguments.seconds
    while not done:
        tokens = next(loader)
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        optimizer.step()
        step += 1
        done = torch.tensor([float(time.monotonic() > end)])
        dist.all_reduce(done, op=dist.ReduceOp.MAX)
        if dist.get_rank() == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    manager.save(model, optimizer, loader, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
