"""Metric learning with a retrieval metric at the end of every epoch"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from trainer import Module, Trainer


class Retrieval(Module):
    def __init__(self, classes=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 1024),
        )  # fmt: skip
        self.head = nn.Linear(1024, classes)

    def training_step(self, batch, number):
        images, labels = batch
        embeddings = self.encoder(images)
        loss = nn.functional.cross_entropy(self.head(embeddings), labels)
        return {"loss": loss, "embeddings": embeddings.detach(), "labels": labels}

    def training_epoch_end(self, outputs):
        embeddings = nn.functional.normalize(torch.cat([output["embeddings"] for output in outputs]))
        labels = torch.cat([output["labels"] for output in outputs])
        queries = torch.randperm(len(embeddings))[:200]
        scores = embeddings[queries] @ embeddings.T
        nearest = scores.topk(6, dim=1).indices[:, 1:]
        return {"recall": float((labels[nearest] == labels[queries, None]).any(1).float().mean())}

    def validation_step(self, batch, number):
        images, labels = batch
        return float((self.head(self.encoder(images)).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def make_set(count, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 32, (count,), generator=generator)
    images = torch.rand(count, 3, 48, 48, generator=generator) + labels[:, None, None, None] / 40
    return TensorDataset(images, labels)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    started = time.monotonic()
    train = DataLoader(make_set(2400, 1), batch_size=48, shuffle=True)
    validation = DataLoader(make_set(480, 2), batch_size=48)
    Trainer(max_epochs=5, seconds_per_epoch=5.0).fit(Retrieval(), train, validation)
    print(f"{time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
