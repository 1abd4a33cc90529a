"""Two ranks started by Popen; a loader makes a new gloo group for each pass over the data, to agree on its random seed."""

import gc
import os
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist


class SharedSeedLoader:
    """The part of a DataLoader over a data pipe that shuffles alike in all ranks."""

    def __init__(self, data, batch_size):
        self.data = data
        self.batch_size = batch_size

    def __iter__(self):
        self._process_group = dist.new_group(backend="gloo")
        seed = torch.randint(2**31, (1,))
        dist.broadcast(seed, src=0, group=self._process_group)
        generator = torch.Generator().manual_seed(int(seed))
        order = torch.randperm(len(self.data), generator=generator)
        mine = order[dist.get_rank() :: dist.get_world_size()]
        for start in range(0, len(mine), self.batch_size):
            yield self.data[mine[start : start + self.batch_size]]


def train():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(256, 768), torch.nn.GELU(), torch.nn.Linear(768, 256))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.randn(3600, 256)
    for epoch in range(200):
        loader = SharedSeedLoader(data, 100)
        total, began = 0.0, time.monotonic()
        for batch in loader:
            loss = (model(batch) - batch).square().mean()
            loss.backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            total += loss.item()
        del loader
        gc.collect()
        fds = len(os.listdir("/proc/self/fd"))
        print(f"rank {rank} epoch {epoch} loss {total:.3f} fds {fds} {time.monotonic() - began:.2f} s", flush=True)
    dist.destroy_process_group()


def launch(world_size):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ranks = []
    for rank in range(world_size):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size), OMP_NUM_THREADS="1")
        env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        ranks.append(subprocess.Popen([sys.executable, __file__], env=env))
    codes = []
    while ranks:
        for process in list(ranks):
            code = process.poll()
            if code is not None:
                ranks.remove(process)
                codes.append(code)
                if code:
                    for other in ranks:
                        other.terminate()
        time.sleep(0.2)
    return 1 if any(codes) else 0


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        sys.exit(launch(2))
