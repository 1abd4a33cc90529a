"""One process of the node: trains its shard on synthetic tokens, and saves it"""

import tempfile
import time

import torch
import torch.distributed as dist
from serialization import Checkpointer
from torch import nn

torch.set_num_threads(1)
WIDTH, INNER, LAYERS, STEP_S = 1024, 1728, 2, 0.2
WRITE_BUDGET, SAVE_AT, STEPS = 96 << 20, 80, 110


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def shard(model, optimizer):
    """What this process keeps: its part of the weights and of both moments"""
    arrays = {}
    for name, parameter in model.named_parameters():
        arrays[name] = parameter
        for moment in ("exp_avg", "exp_avg_sq"):
            arrays[f"{name}.{moment}"] = optimizer.state[parameter][moment]
    return arrays


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = nn.Sequential(*[Block() for _ in range(LAYERS)])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
    with tempfile.TemporaryDirectory() as folder:
        checkpointer = Checkpointer(folder, rank, WRITE_BUDGET)
        begin = time.monotonic()
        for step in range(1, STEPS + 1):
            tokens = torch.randn(24, WIDTH)
            loss = (model(tokens).roll(1, 0) - tokens).square().mean()
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                while time.monotonic() < begin + step * STEP_S:
                    model(tokens)
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0 and step % 10 == 0:
                print(f"step {step}: loss {mean.item() / dist.get_world_size():.4f}", flush=True)
            if step == SAVE_AT:
                written = checkpointer.save(step, shard(model, optimizer))
                dist.barrier()
                print(f"process {rank} wrote {written >> 20} MiB", flush=True)
                begin = time.monotonic() - step * STEP_S
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
