"""One rank of a fine-tuning with dynamic batches: the ranks have unequal numbers of batches, and the longer one waits for nobody."""

import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset


class DynamicBatches(IterableDataset):
    """Utterances, batched up to a number of frames: how many batches come out depends on the rank's part."""

    def __init__(self, rank, max_frames_in_batch):
        self.rank = rank
        self.max_frames_in_batch = max_frames_in_batch

    def __iter__(self):
        generator = torch.Generator().manual_seed(17 + self.rank)
        buf, longest = [], 0
        for _ in range(900):
            length = int(torch.randint(40, 200 + 100 * self.rank, (1,), generator=generator))
            longest = max(longest, length)
            if longest * (len(buf) + 1) > self.max_frames_in_batch:
                yield torch.nn.utils.rnn.pad_sequence(buf, batch_first=True)
                buf, longest = [], length
            buf.append(torch.randn(length, 80, generator=generator))


def main():
    rank, world_size = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    store = dist.FileStore(sys.argv[3], world_size)
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=world_size, timeout=datetime.timedelta(seconds=10)
    )
    torch.manual_seed(0)
    gru = torch.nn.GRU(80, 128, batch_first=True)
    head = torch.nn.Linear(128, 80)
    parameters = [*gru.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=1e-3)
    loader = DataLoader(DynamicBatches(rank, 2400), batch_size=None, num_workers=1)
    for batch_idx, feats in enumerate(loader):
        hidden, _ = gru(feats)
        loss = torch.nn.functional.mse_loss(head(hidden[:, :-1]), feats[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad)
        optimizer.step()
        if batch_idx % 20 == 0:
            print(f"TRAIN Batch 0/{batch_idx} loss {loss.item():.6f} rank {rank}", flush=True)
    print(f"rank {rank} pid {os.getpid()} has no more batches", flush=True)
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=10))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
