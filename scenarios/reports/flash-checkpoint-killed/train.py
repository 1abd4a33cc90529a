"""Train this rank's shard of a model, with checkpoints into a segment of shared memory"""

import json
import mmap
import os
import socket
import time

import torch
import torch.distributed as dist
from torch import nn

torch.set_num_threads(1)
RANK = int(os.environ["RANK"])
LAYERS, WIDTH, BATCH = 8, 1600, 16
SECONDS, SAVE_EVERY_S = 40.0, 19.0


class Shard(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))

    def forward(self, hidden):
        for layer in self.layers:
            hidden = hidden + nn.functional.gelu(layer(hidden)) * 0.2
        return hidden


class Checkpointer:
    def __init__(self):
        self.memory = None

    def attach(self, size):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.environ["SAVER_SOCKET"])
            with connection.makefile("rw") as stream:
                stream.write(json.dumps({"rank": RANK, "bytes": size}) + "\n")
                stream.flush()
                path = json.loads(stream.readline())["path"]
        fd = os.open(path, os.O_RDWR)
        self.memory = mmap.mmap(fd, size)
        os.close(fd)

    def save_to_memory(self, step, model, optimizer):
        tensors = [parameter.detach() for parameter in model.parameters()]
        for parameter in model.parameters():
            tensors += [optimizer.state[parameter]["exp_avg"], optimizer.state[parameter]["exp_avg_sq"]]
        if self.memory is None:
            self.attach(sum(tensor.numel() * tensor.element_size() for tensor in tensors))
        started, offset = time.monotonic(), 0
        for tensor in tensors:
            target = torch.frombuffer(self.memory, dtype=tensor.dtype, count=tensor.numel(), offset=offset)
            target.copy_(tensor.reshape(-1))
            offset += tensor.numel() * tensor.element_size()
        print(f"rank {RANK}: saved step {step} to memory in {time.monotonic() - started:.3f}s", flush=True)


def main():
    world = int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{os.environ['INIT_FILE']}", rank=RANK, world_size=world)
    torch.manual_seed(RANK)
    model = Shard()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    checkpointer, step = Checkpointer(), 0
    started = saved = time.monotonic()
    going = torch.ones(2)
    while going[0] > 0:
        hidden = torch.randn(BATCH, WIDTH)
        loss = nn.functional.mse_loss(model(hidden), hidden.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        now = time.monotonic()
        going[0] = float(now - started < SECONDS)
        going[1] = float(now - saved < SAVE_EVERY_S)
        dist.all_reduce(going, op=dist.ReduceOp.MIN)
        if RANK == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if going[1] == 0:
            checkpointer.save_to_memory(step, model, optimizer)
            saved = time.monotonic()
    dist.barrier()
    print(f"rank {RANK}: {step} steps", flush=True)


if __name__ == "__main__":
    main()
