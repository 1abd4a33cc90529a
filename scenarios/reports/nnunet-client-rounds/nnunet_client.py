"""A client whose local training is that of a segmentation trainer: a trainer is set up for each round of the federation"""

import argparse
import gc
import pickle
import socket
import time

import numpy as np
import torch

torch.set_num_threads(1)
CASES, CHANNELS, SIDE = 16, 2, (32, 64, 64)
PATCH, BATCH = 24, 2
FIT_S = 0.9
LOCATIONS = 2000


def build_network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv3d(CHANNELS, 8, 3, padding=1),
        torch.nn.LeakyReLU(),
        torch.nn.Conv3d(8, 8, 3, padding=1),
        torch.nn.LeakyReLU(),
        torch.nn.Conv3d(8, 3, 1),
    )


class Loader:
    """Draws patches around foreground voxels of the cases that were unpacked into memory"""

    def __init__(self, trainer, number):
        self.trainer = trainer
        self.generator = np.random.default_rng(number)
        noise = torch.Generator().manual_seed(number)
        self.cases = [torch.randn(CHANNELS, *SIDE, generator=noise) for _ in range(CASES)]

    def class_locations(self):
        voxels = self.generator.integers(0, SIDE[0] - PATCH, (3, LOCATIONS))
        return list(zip(*[axis.tolist() for axis in voxels]))

    def next(self):
        locations = self.class_locations()
        patches = []
        for _ in range(BATCH):
            case = self.cases[int(self.generator.integers(CASES))]
            z, y, x = locations[int(self.generator.integers(LOCATIONS))]
            patches.append(case[:, z : z + PATCH, y : y + PATCH, x : x + PATCH])
        data = torch.stack(patches)
        self.trainer.seen += BATCH
        return data, (data.sum(1) > 1).long() + (data[:, 0] > 0).long()


class PolyLRScheduler:
    def __init__(self, trainer, initial):
        self.trainer, self.initial, self.steps = trainer, initial, 0

    def step(self):
        self.steps += 1
        for group in self.trainer.optimizer.param_groups:
            group["lr"] = self.initial * (1 - min(self.steps, 900) / 1000) ** 0.9


class Trainer:
    def __init__(self, number):
        self.seen = 0
        self.network = build_network()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.01, momentum=0.99, nesterov=True)
        self.loader = Loader(self, number)
        self.scheduler = PolyLRScheduler(self, 0.01)

    def train_step(self):
        data, target = self.loader.next()
        loss = torch.nn.functional.cross_entropy(self.network(data), target)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 12)
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()


class NnunetClient:
    def __init__(self):
        self.trainer = None

    def plan(self):
        """Tries one step with the plan, and gives back the parameters to begin with"""
        trainer = Trainer(0)
        parameters = self.get_parameters(trainer.network)
        print(f"the plan fits: loss {trainer.train_step():.3f}", flush=True)
        del trainer
        gc.collect()
        return parameters

    def get_parameters(self, network):
        return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}

    def setup(self, number, parameters):
        self.trainer = Trainer(number)
        self.trainer.network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in parameters.items()})

    def fit(self, number, parameters):
        self.setup(number, parameters)
        end, loss, steps = time.monotonic() + FIT_S, 0.0, 0
        while time.monotonic() < end or steps < 8:
            loss += self.trainer.train_step()
            steps += 1
        return {"parameters": self.get_parameters(self.trainer.network), "loss": loss / steps, "samples": self.trainer.seen}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    client = NnunetClient()
    with socket.create_connection(("127.0.0.1", options.port)) as connection:
        incoming = connection.makefile("rb")

        def send(message):
            data = pickle.dumps(message, protocol=5)
            connection.sendall(len(data).to_bytes(8, "big") + data)

        send(client.plan())
        while True:
            message = pickle.loads(incoming.read(int.from_bytes(incoming.read(8), "big")))
            if message["kind"] == "disconnect":
                break
            send(client.fit(message["round"], message["parameters"]))


if __name__ == "__main__":
    main()
