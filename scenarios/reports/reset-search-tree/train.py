"""Rank 0: trains the network on the last positions of all games, and writes it for the others"""

import collections
import os
import random
import sys
from multiprocessing.connection import Listener, wait

import numpy as np
import torch
from board import CELLS
from torch import nn

torch.set_num_threads(1)
PLAYERS, POSITIONS, BATCH, UPDATES = 2, 4000, 128, 30


class Network(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.body, self.policy, self.value = nn.Linear(2 * CELLS, width), nn.Linear(width, CELLS), nn.Linear(width, 1)

    def forward(self, features):
        hidden = torch.relu(self.body(features))
        return self.policy(hidden), torch.tanh(self.value(hidden))[:, 0]

    def write(self, path):
        with open(f"{path}.new", "wb") as file:
            np.savez(file, **{name: tensor.numpy() for name, tensor in self.state_dict().items()})
        os.replace(f"{path}.new", path)


def main():
    torch.manual_seed(0)
    folder, network = sys.argv[1], Network()
    path = os.path.join(folder, "network.npz")
    network.write(path)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    positions = collections.deque(maxlen=POSITIONS)
    with Listener(os.path.join(folder, "games"), "AF_UNIX", backlog=PLAYERS) as listener:
        players = [listener.accept() for _ in range(PLAYERS)]
        while players:
            for player in wait(players):
                game = player.recv()
                if game is None:
                    players.remove(player)
                    continue
                positions.extend(zip(*game))
                for _ in range(UPDATES):
                    chosen = random.choices(positions, k=BATCH)
                    states, shares, results = (torch.from_numpy(np.stack(column)) for column in zip(*chosen))
                    logits, values = network(states)
                    loss = nn.functional.cross_entropy(logits, shares) + (values - results).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                network.write(path)
                print(f"{len(positions)} positions, loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
