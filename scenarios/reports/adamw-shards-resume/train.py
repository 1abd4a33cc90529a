"""A rank of the training: `train` writes the shard of its optimizer at the end, `resume` begins with it"""

import os
import sys
import time

import torch
import torch.distributed as dist
from optimizer import FP32AdamW
from torch import nn

torch.set_num_threads(1)
BUCKETS, WIDTH, HIDDEN, BATCH, TRAIN_S, WARM_S, STEP_S = 10, 1024, 1536, 16, 11.0, 3.0, 0.5


class Rank:
    def __init__(self, rank):
        self.rank = rank
        torch.manual_seed(rank)
        shapes = [(HIDDEN, WIDTH) if number % 2 == 0 else (WIDTH, HIDDEN) for number in range(BUCKETS)]
        self.buckets = [nn.Parameter(0.02 * torch.randn(shape)) for shape in shapes]
        self.optimizer = FP32AdamW(self.buckets)
        for number, bucket in enumerate(self.buckets):
            bucket.register_post_accumulate_grad_hook(self.hook(number))

    def hook(self, number):
        def update(bucket):
            self.optimizer.update(number, bucket.grad)
            bucket.grad = None

        return update

    def loss(self, x):
        hidden = x
        for bucket in self.buckets:
            hidden = torch.tanh(nn.functional.linear(hidden, bucket))
        return (hidden - x).square().mean()

    def train(self, seconds):
        begin, step, mean = time.monotonic(), 0, torch.zeros(())
        while time.monotonic() < begin + seconds:
            x = torch.randn(BATCH, WIDTH)
            loss = self.loss(x)
            loss.backward()
            self.optimizer.steps += 1
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            step += 1
            with torch.no_grad():
                while time.monotonic() < begin + step * STEP_S:
                    self.loss(x)
            more = torch.tensor(float(time.monotonic() < begin + seconds))
            dist.all_reduce(more, op=dist.ReduceOp.MIN)
            if not more:
                break
        if self.rank == 0:
            print(f"{step} steps, loss {mean.item() / dist.get_world_size():.4f}", flush=True)


def main():
    phase, folder = sys.argv[1:]
    dist.init_process_group("gloo")
    rank = Rank(int(os.environ["RANK"]))
    if phase == "resume":
        # The loss of the first batches, to compare with the log
        with torch.no_grad():
            until = time.monotonic() + WARM_S
            while time.monotonic() < until:
                rank.loss(torch.randn(BATCH, WIDTH))
        rank.optimizer.load_shard(folder, rank.rank)
        dist.barrier()
        rank.train(TRAIN_S / 2)
    else:
        rank.train(TRAIN_S)
        rank.optimizer.save_shard(folder, rank.rank)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
