"""A pipeline of stages in processes (torch.multiprocessing.spawn); an assertion on the number of iterations ends the second epoch."""

import sys

import torch
import torch.multiprocessing as mp


class Runtime:
    def __init__(self, rank, stages, queues):
        torch.set_num_threads(1)
        torch.manual_seed(rank)
        self.rank, self.stages, self.queues = rank, stages, queues
        self.num_ranks_in_next_stage = 2
        layers = [torch.nn.Conv2d(3 if rank == 0 else 24, 24, 3, padding=1), torch.nn.ReLU()]
        layers += [torch.nn.Conv2d(24, 24, 3, padding=1), torch.nn.ReLU()]
        if rank == stages - 1:
            layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(24, 10)]
        self.module = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=0.01)

    def set_forward_iterations(self, forward_num_iterations):
        assert forward_num_iterations % self.num_ranks_in_next_stage == 0
        self.forward_num_iterations = forward_num_iterations

    def run(self, epoch, images):
        last = self.rank == self.stages - 1
        for n in range(self.forward_num_iterations):
            received = images[n % len(images)] if self.rank == 0 else self.queues[self.rank - 1].get()
            received = received.clone().requires_grad_(self.rank > 0)
            output = self.module(received)
            if last:
                loss = torch.nn.functional.cross_entropy(output, torch.arange(len(output)) % 10)
                if n % 40 == 0:
                    print(f"Epoch: {epoch} Step {n} Loss: {loss.item():.4f}", flush=True)
            else:
                self.queues[self.rank].put(output.detach())
                loss = output.square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def main_worker(rank, stages, queues, epoch_end, num_samples, batch_size):
    runtime = Runtime(rank, stages, queues)
    images = torch.rand(8, batch_size, 3, 48, 48)
    for epoch in range(4):
        # The last, smaller batch is kept from the second epoch on.
        iterations = num_samples // batch_size + (1 if epoch > 0 else 0)
        runtime.set_forward_iterations(iterations)
        runtime.run(epoch, images)
        epoch_end.wait()


if __name__ == "__main__":
    stages = 2
    context = mp.get_context("spawn")
    queues = [context.Queue(maxsize=4) for _ in range(stages - 1)]
    epoch_end = context.Barrier(stages)
    mp.spawn(main_worker, (stages, queues, epoch_end, int(sys.argv[1]), 16), nprocs=stages)
