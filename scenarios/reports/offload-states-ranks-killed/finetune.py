"""Fine-tune a language model; weights in half precision, the optimizer's share of each rank on the CPU"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(1)
LAYERS, WIDTH, INNER, WORDS, TOKENS = 8, 1024, 4096, 2048, 96
EVALUATE_S, ACCUMULATE, STEPS = 10.0, 3, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Parameter((torch.randn(INNER, WIDTH) * 0.02).bfloat16())
        self.down = nn.Parameter((torch.randn(WIDTH, INNER) * 0.02).bfloat16())

    def forward(self, hidden):
        normed = nn.functional.layer_norm(hidden, (WIDTH,))
        inner = nn.functional.gelu(nn.functional.linear(normed, self.up.float()))
        return hidden + nn.functional.linear(inner, self.down.float())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.register_buffer("words", torch.randn(WORDS, WIDTH) * 0.05)

    def forward(self, tokens):
        hidden = self.words[tokens[:-1]]
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant=False) if self.training else block(hidden)
        return nn.functional.cross_entropy(hidden @ self.words.t(), tokens[1:])


class OffloadedOptimizer:
    """Each rank owns a share of every parameter, in float32 on the CPU"""

    def __init__(self, parameters, rank, world):
        self.parameters, self.rank, self.world = list(parameters), rank, world
        self.masters = [nn.Parameter(self.share(parameter.detach()).float()) for parameter in self.parameters]
        self.buffers = [torch.zeros_like(master) for master in self.masters]
        self.adam = torch.optim.AdamW(self.masters, lr=1e-5, foreach=False)

    def share(self, tensor):
        return tensor.view(-1).chunk(self.world)[self.rank]

    def reduce_gradients(self):
        for parameter, buffer in zip(self.parameters, self.buffers):
            gradient = parameter.grad.float()
            dist.all_reduce(gradient)
            buffer.add_(self.share(gradient), alpha=1.0 / (self.world * ACCUMULATE))
            parameter.grad.zero_()

    def step(self):
        for master, buffer in zip(self.masters, self.buffers):
            master.grad = buffer
        self.adam.step()
        for parameter, master, buffer in zip(self.parameters, self.masters, self.buffers):
            whole = [torch.empty_like(master.data) for _ in range(self.world)]
            dist.all_gather(whole, master.data)
            parameter.data.copy_(torch.cat(whole).view_as(parameter))
            buffer.zero_()


def see_memory_usage(message, rank):
    if rank == 0:
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        print(f"[see_memory_usage] {message}: resident {resident / 2**30:.2f} GB", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int)
    parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{os.environ['INIT_FILE']}", rank=rank, world_size=world)
    torch.manual_seed(5)
    model = Model()
    data = torch.Generator().manual_seed(rank)
    see_memory_usage("model built", rank)

    model.eval()
    end, total, batches = time.monotonic() + EVALUATE_S, 0.0, 0
    with torch.no_grad():
        while time.monotonic() < end:
            total += model(torch.randint(0, WORDS, (TOKENS + 1,), generator=data)).item()
            batches += 1
    print(f"rank {rank}: loss before training {total / batches:.3f}", flush=True)

    model.train()
    dist.barrier()
    see_memory_usage("stage 2 initialize beginning", rank)
    optimizer = OffloadedOptimizer(model.parameters(), rank, world)
    see_memory_usage("stage 2 initialize ending", rank)
    for step in range(STEPS):
        for _ in range(ACCUMULATE):
            loss = model(torch.randint(0, WORDS, (TOKENS + 1,), generator=data))
            loss.backward()
            optimizer.reduce_gradients()
        see_memory_usage(f"before step {step}", rank)
        optimizer.step()
        see_memory_usage(f"after step {step}", rank)
        if rank == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
