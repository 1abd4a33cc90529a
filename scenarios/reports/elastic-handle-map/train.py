"""Elastic training of a classifier: commits its state, and restores it when an operation fails"""

import functools
import os

import torch
from torch import nn

import mpi_ops

torch.set_num_threads(1)
RANK = int(os.environ["HOROVOD_RANK"])
FEATURES, HIDDEN, CLASSES, BATCH, COMMIT_EVERY = 512, 1024, 256, 64, 3


class DistributedOptimizer:
    def __init__(self, optimizer, parameters):
        self.optimizer, self.handles = optimizer, {}
        for name, parameter in enumerate(parameters):
            parameter.register_post_accumulate_grad_hook(functools.partial(self.hook, name))

    def hook(self, name, parameter):
        self.handles[parameter] = mpi_ops.allreduce_async_(parameter.grad, name)

    def synchronize(self):
        for handle in self.handles.values():
            mpi_ops.synchronize(handle)
        self.handles.clear()

    def step(self):
        self.synchronize()
        self.optimizer.step()

    def reset(self):
        self.handles.clear()
        self.optimizer.zero_grad(set_to_none=True)


class TorchState:
    def __init__(self, model):
        self.model, self.batch = model, 0
        self.commit()

    def commit(self):
        self.saved = {key: value.clone() for key, value in self.model.state_dict().items()}
        self.saved_batch = self.batch

    def restore(self):
        self.model.load_state_dict(self.saved)
        self.batch = self.saved_batch


def train(state, optimizer, truth):
    while True:
        generator = torch.Generator().manual_seed(state.batch * 2 + RANK)
        features = torch.randn(BATCH, FEATURES, generator=generator)
        labels = (features @ truth).argmax(dim=1)
        optimizer.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(state.model(features), labels)
        loss.backward()
        optimizer.step()
        state.batch += 1
        if state.batch % COMMIT_EVERY == 0:
            state.commit()
        if state.batch % 100 == 0 and RANK == 0:
            print(f"batch {state.batch}: loss {loss.item():.3f}", flush=True)


def main():
    torch.manual_seed(11)
    truth = torch.randn(FEATURES, CLASSES)
    model = nn.Sequential(
        nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)
    )
    optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05), model.parameters())
    state, resets = TorchState(model), 0
    while mpi_ops.init():
        try:
            train(state, optimizer, truth)
        except mpi_ops.HorovodInternalError as error:
            resets += 1
            if resets % 10 == 1 and RANK == 0:
                print(f"reset {resets}: {error}", flush=True)
            state.restore()
            optimizer.reset()
    print(f"rank {RANK}: {state.batch} batches, {resets} resets", flush=True)


if __name__ == "__main__":
    main()
