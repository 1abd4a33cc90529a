"""Trains a classifier of pictures with early stopping, and evaluates it on the test pictures"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from bearer import EarlyStopping, PrintMetrics, Trial

torch.set_num_threads(1)
EPOCHS, EPOCH_S, CLASSES = 8, 2.6, 10


def pictures(count, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    images = torch.randn(count, 3, 48, 48, generator=generator)
    images[:, 0, :8] += labels[:, None, None] / 4
    return TensorDataset(images, labels)


def main():
    torch.manual_seed(0)
    cnn = nn.Sequential(
        nn.Conv2d(3, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, CLASSES),
    )
    optimizer = torch.optim.Adam(cnn.parameters(), lr=5e-4)
    trial = Trial(
        cnn,
        optimizer,
        nn.functional.cross_entropy,
        callbacks=[PrintMetrics(), EarlyStopping(monitor="val_acc", patience=EPOCHS, mode="max")],
        epoch_seconds=EPOCH_S,
    ).with_generators(
        train=DataLoader(pictures(8000, 1), 64, shuffle=True),
        val=DataLoader(pictures(1000, 2), 200),
        test=DataLoader(pictures(1500, 3), 200),
    )
    history = trial.run(EPOCHS)
    print(f"best val_acc {max(metrics['val_acc'] for metrics in history):.4f}", flush=True)
    print(trial.evaluate())


if __name__ == "__main__":
    main()
