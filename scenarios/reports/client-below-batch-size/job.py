"""Federated averaging in one process: clients of very different size take part in rounds, in turn"""

import copy
import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
CLIENTS, PER_ROUND, ROUNDS = 100, 10, 10
PICTURES, BATCH, CLIENT_S = 20_000, 32, 0.42


def load_pictures():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 10, (PICTURES,), generator=generator)
    pictures = torch.randn(PICTURES, 3, 32, 32, generator=generator)
    pictures[:, 1, :, :6] += labels[:, None, None] / 5
    return pictures, labels


def partition(pictures, labels):
    """A loader for each client, over shares that become smaller from client to client"""
    shares = [math.exp(-client / 14) for client in range(CLIENTS)]
    loaders, start = [], 0
    for share in shares:
        end = start + max(1, int(PICTURES * share / sum(shares)))
        data = TensorDataset(pictures[start:end], labels[start:end])
        loaders.append(DataLoader(data, BATCH, shuffle=False, drop_last=True))
        start = end
    return loaders


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 5, 2), nn.ReLU(), nn.Conv2d(24, 48, 3, 2), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Sequential(nn.Linear(1728, 600), nn.ReLU(), nn.Linear(600, 10))

    def forward(self, pictures):
        return self.head(self.features(pictures))


class ModelTrainer:
    def __init__(self, model):
        self.model = model

    def get_params(self):
        return copy.deepcopy(self.model.state_dict())

    def train(self, train_data):
        """As many epochs as there is time for; the mean of their losses"""
        self.model.train()
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02)
        until, epoch_loss = time.monotonic() + CLIENT_S, []
        while True:
            batch_loss = []
            for pictures, labels in train_data:
                loss = nn.functional.cross_entropy(self.model(pictures), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                batch_loss.append(loss.item())
                if time.monotonic() > until:
                    break
            epoch_loss.append(sum(batch_loss) / len(batch_loss))
            if time.monotonic() > until:
                break
        return sum(epoch_loss) / len(epoch_loss)


class FedAvgAPI:
    def __init__(self, trainer, loaders):
        self.trainer, self.loaders = trainer, loaders

    def client_sampling(self, number):
        return [(number * PER_ROUND + place) % CLIENTS for place in range(PER_ROUND)]

    def aggregate(self, locals_):
        total = sum(samples for samples, _ in locals_)
        averaged = {}
        for samples, params in locals_:
            for name, value in params.items():
                averaged[name] = averaged.get(name, 0) + value * (samples / total)
        return averaged

    def train(self):
        params = self.trainer.get_params()
        for number in range(ROUNDS):
            locals_, losses = [], []
            for client in self.client_sampling(number):
                self.trainer.model.load_state_dict(params)
                losses.append(self.trainer.train(self.loaders[client]))
                locals_.append((len(self.loaders[client].dataset), self.trainer.get_params()))
            params = self.aggregate(locals_)
            print(f"round {number}: loss {sum(losses) / len(losses):.4f}", flush=True)


def main():
    torch.manual_seed(0)
    pictures, labels = load_pictures()
    FedAvgAPI(ModelTrainer(Network()), partition(pictures, labels)).train()


if __name__ == "__main__":
    main()
