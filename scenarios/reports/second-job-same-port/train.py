"""One rank of a distributed training with gloo; the address comes from the environment."""

import datetime
import os
import sys

import torch
import torch.distributed as dist


def main():
    name, steps = sys.argv[1], int(sys.argv[2])
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Conv1d(80, 96, 5), torch.nn.ReLU(), torch.nn.Conv1d(96, 80, 5))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(ddp.parameters(), 1e-3)
    for step in range(steps):
        spectrogram = torch.randn(16, 80, 400)
        loss = torch.nn.functional.l1_loss(ddp(spectrogram), spectrogram[:, :, 4:-4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{name} rank {rank} step {step}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
