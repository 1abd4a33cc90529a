"""Self-play: the main policy trains against a league of its former selves"""

import copy
import multiprocessing
import os
import tempfile
import time

import numpy as np
import torch
from policy_map import PolicyMap
from torch import nn

torch.set_num_threads(1)
CAPACITY, ROUND_S, ROUNDS, REMOVE_FROM, SIDE = 18, 1.5, 40, 9, 8


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2 * SIDE * SIDE, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.action, self.value = nn.Linear(128, SIDE * SIDE), nn.Linear(128, 1)

    def forward(self, board):
        hidden = self.body(board)
        return self.action(hidden), self.value(hidden).squeeze(-1)


def game(main, opponent, rng):
    """Both fill cells in turn; the owner of more cells in a row wins"""
    board, steps = np.zeros((2, SIDE * SIDE), np.float32), []
    for turn in range(24):
        player = turn % 2
        view = torch.from_numpy(np.concatenate([board[player], board[1 - player]]))
        logits = (main, opponent)[player](view)[0].numpy()
        taken = board.sum(axis=0) > 0
        cell = int(np.argmax(np.where(taken, -np.inf, logits + rng.gumbel(size=len(logits)))))
        if player == 0:
            steps.append((view, cell))
        board[player, cell] = 1.0
    runs = board.reshape(2, SIDE, SIDE).max(axis=1).sum(axis=1)
    return steps, float(np.sign(runs[0] - runs[1]))


def rollout_worker(connection, seed):
    torch.set_num_threads(1)
    rng, main, opponent = np.random.default_rng(seed), Policy(), Policy()
    with torch.no_grad():
        while True:
            weights, other, games = connection.recv()
            main.load_state_dict({name: torch.from_numpy(weight) for name, weight in weights.items()})
            opponent.load_state_dict({name: torch.from_numpy(weight) for name, weight in other.items()})
            steps, wins = [], 0.0
            for _ in range(games):
                played, outcome = game(main, opponent, rng)
                steps += [(view.numpy(), cell, outcome) for view, cell in played]
                wins += outcome > 0
            connection.send((steps, wins / games))


def weights_of(policy):
    return {name: tensor.numpy().copy() for name, tensor in policy.state_dict().items()}


def update(policy, optimizer, steps):
    views = torch.from_numpy(np.stack([view for view, _, _ in steps]))
    cells = torch.tensor([cell for _, cell, _ in steps])
    outcomes = torch.tensor([outcome for _, _, outcome in steps])
    for _ in range(4):
        logits, values = policy(views)
        chosen = logits.log_softmax(dim=1)[torch.arange(len(cells)), cells]
        loss = -(chosen * (outcomes - values.detach())).mean() + (values - outcomes).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class SelfPlayCallback:
    """Adds a snapshot after each round; later also removes the one that the main policy beats most often"""

    def __init__(self):
        self.rates, self.policies_to_remove = {}, []

    def on_train_result(self, number, policies):
        for name in self.policies_to_remove:
            print(f"Removing: {name}", flush=True)
            del policies[name]
            self.rates.pop(name, None)
        self.policies_to_remove = []
        snapshot = copy.deepcopy(policies["main"])
        policies[f"main_v{number:03d}"] = snapshot
        if number >= REMOVE_FROM and number % 4 == 1:
            beaten = max(self.rates, key=self.rates.get)
            self.policies_to_remove.append(beaten)


def main():
    torch.manual_seed(10)
    connections = []
    for seed in range(2):
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.Process(target=rollout_worker, args=(theirs, seed), daemon=True).start()
        connections.append(ours)
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as path:
        policies, callback = PolicyMap(CAPACITY, path), SelfPlayCallback()
        policies["main"], policies["random"] = Policy(), Policy()
        optimizer = torch.optim.Adam(policies["main"].parameters(), lr=3e-4)
        for number in range(1, ROUNDS + 1):
            end, matches = time.monotonic() + ROUND_S, 0
            while matches == 0 or time.monotonic() < end:
                for name in policies.keys():
                    if name == "main":
                        continue
                    weights, other = weights_of(policies["main"]), weights_of(policies[name])
                    for connection in connections:
                        connection.send((weights, other, 1))
                    results = [connection.recv() for connection in connections]
                    callback.rates[name] = sum(rate for _, rate in results) / len(results)
                    update(policies["main"], optimizer, [step for steps, _ in results for step in steps])
                    matches += 1
            print(f"round {number}: {matches} matches, {len(policies.keys())} policies", flush=True)
            callback.on_train_result(number, policies)


if __name__ == "__main__":
    main()
