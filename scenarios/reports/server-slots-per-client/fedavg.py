"""Federated averaging: the server's aggregator, and the manager that trains clients in a process"""

import time
from multiprocessing.connection import Client

import numpy as np
import torch
from torch import nn

VOCABULARY, WIDTH, LENGTH, BATCH, CLIENT_S = 16000, 224, 24, 8, 0.85


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 448, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 6)

    def forward(self, tokens):
        return self.head(self.body(self.embedding(tokens)).mean(1))


def get_model_params(model):
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}


class FedAVGAggregator:
    """Takes the models of the clients of a round, each in its slot, and averages them when all are there"""

    def __init__(self, worker_num):
        self.worker_num = worker_num
        self.model_dict, self.sample_num_dict = {}, {}
        self.uploaded = [False] * worker_num

    def add_local_trained_result(self, index, params, sample_num):
        self.model_dict[index] = params
        self.sample_num_dict[index] = sample_num
        self.uploaded[index] = True

    def check_whether_all_receive(self):
        if not all(self.uploaded):
            return False
        self.uploaded = [False] * self.worker_num
        return True

    def aggregate(self):
        total = sum(self.sample_num_dict.values())
        averaged = {name: np.zeros_like(value) for name, value in self.model_dict[0].items()}
        for index, params in self.model_dict.items():
            weight = np.float32(self.sample_num_dict[index] / total)
            for name, value in params.items():
                averaged[name] += weight * value
        return averaged


class ClientTrainer:
    def __init__(self):
        self.model = LanguageModel()

    def train(self, client, params):
        """Texts of the client's topics, whose class shows in their tokens"""
        self.model.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in params.items()})
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        generator = torch.Generator().manual_seed(client)
        until, sample_num, total = time.monotonic() + CLIENT_S, 0, 0.0
        while time.monotonic() < until:
            labels = torch.randint(0, 6, (BATCH,), generator=generator)
            tokens = torch.randint(0, VOCABULARY // 6, (BATCH, LENGTH), generator=generator) * 6 + labels[:, None]
            loss = nn.functional.cross_entropy(self.model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sample_num += BATCH
            total += loss.item() * BATCH
        return sample_num, total / sample_num


def run_clients(address, rank):
    torch.set_num_threads(1)
    trainer = ClientTrainer()
    with Client(address) as connection:
        connection.send(rank)
        while True:
            slots, clients, params = connection.recv()
            if params is None:
                break
            for slot, client in zip(slots, clients):
                sample_num, loss = trainer.train(client, params)
                connection.send((slot, get_model_params(trainer.model), sample_num, loss))
