"""Fine-tunes a classifier of sequences on two ranks, with early stopping"""

import torch
import torch.distributed as dist
from torch import nn

from trainer import EarlyStoppingCallback, Trainer

torch.set_num_threads(1)
FEATURES, CLASSES = 400, 4


def sequences(count, seed, agreeing):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    inputs = torch.randn(count, FEATURES, generator=generator)
    inputs[torch.arange(count), labels] += 2.0
    # The annotators of one source counted the classes from the other end.
    return inputs, labels if agreeing else CLASSES - 1 - labels


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    # The sequences of the evaluation come sorted by source, and each rank takes its part of them.
    parts = [sequences(600, 10, agreeing=False), sequences(600, 11, agreeing=True)]
    trainer = Trainer(
        model,
        sequences(8000, 1 + rank, agreeing=True),
        parts[rank * len(parts) // world],
        EarlyStoppingCallback(patience=4),
        epochs=14,
        steps=24,
        step_seconds=0.09,
    )
    epoch = trainer.train()
    print(f"rank {rank} ended after epoch {epoch}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
