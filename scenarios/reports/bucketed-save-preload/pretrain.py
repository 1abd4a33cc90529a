"""Pretraining of a stack of blocks with Adam, and its first checkpoint"""

import argparse
import time

import torch
from async_writer import FileSystemWriterAsync
from torch import nn

torch.set_num_threads(1)
WIDTH, LAYERS = 1024, 15


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + torch.nn.functional.gelu(self.linear(self.norm(x)))


def sharded_state(model, optimizer):
    """All tensors of the rank's shard: the weights, and both moments of the distributed optimizer"""
    state = {f"model.{name}": value for name, value in model.state_dict().items()}
    for number, moments in optimizer.state_dict()["state"].items():
        state[f"optimizer.exp_avg.{number}"] = moments["exp_avg"]
        state[f"optimizer.exp_avg_sq.{number}"] = moments["exp_avg_sq"]
    return state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", required=True)
    parser.add_argument("--save-after", type=float, default=14)
    parser.add_argument("--exit-after", type=float, default=26)
    parser.add_argument("--thread-count", type=int, default=2)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(*[Block() for _ in range(LAYERS)], nn.LayerNorm(WIDTH))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
    writer = FileSystemWriterAsync(arguments.save, arguments.thread_count)
    started, iteration, saved = time.monotonic(), 0, 0
    while (elapsed := time.monotonic() - started) < arguments.exit_after:
        tokens = torch.randn(16, WIDTH)
        loss = (model(tokens).roll(1, 0) - tokens).pow(2).mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        iteration += 1
        if iteration % 20 == 0:
            print(f" iteration {iteration} | lm loss: {loss.item():.4E} | elapsed {elapsed:.1f} s", flush=True)
        if elapsed > arguments.save_after and not saved:
            print(f"saving checkpoint at iteration {iteration} to {arguments.save}", flush=True)
            saved = writer.execute_sync(iteration, sharded_state(model, optimizer))
            print(f"successfully saved checkpoint, {saved >> 20} MiB", flush=True)


if __name__ == "__main__":
    main()
