"""Gomoku by self-play: a search with the network at each move, and training on what was played."""

import collections
import time

import numpy as np
import torch
from ctree import GumbelTree
from torch import nn

BOARD, SIMULATIONS, MOVES, MOVE_SECONDS = 15, 110, 180, 0.15


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(2, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
        self.policy = nn.Conv2d(16, 1, 1)
        self.value = nn.Linear(16, 1)

    def forward(self, planes):
        hidden = self.body(planes)
        return self.policy(hidden).flatten(1), torch.tanh(self.value(hidden.mean((2, 3))))[:, 0]


class Gomoku:
    def __init__(self, stones=None, player=0):
        self.stones = np.zeros((2, BOARD, BOARD), np.float32) if stones is None else stones
        self.player = player

    def after(self, actions):
        game = Gomoku(self.stones.copy(), self.player)
        for action in actions:
            game.play(action)
        return game

    def play(self, action):
        self.stones[self.player].flat[action] = 1
        self.player = 1 - self.player

    def planes(self):
        return self.stones[[self.player, 1 - self.player]]

    def legal(self):
        return (self.stones.sum(0) == 0).ravel()

    def won(self, player):
        stones = self.stones[player]
        rows = np.lib.stride_tricks.sliding_window_view(stones, 5, axis=0).sum(-1)
        columns = np.lib.stride_tricks.sliding_window_view(stones, 5, axis=1).sum(-1)
        return rows.max() == 5 or columns.max() == 5


class AlphaZero:
    def __init__(self):
        self.network = Network()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.02, momentum=0.9)
        self.memory = collections.deque(maxlen=400)

    @torch.no_grad()
    def evaluate(self, game):
        logits, value = self.network(torch.from_numpy(game.planes())[None])
        priors = torch.softmax(logits[0], 0).numpy() * game.legal()
        return priors / max(priors.sum(), 1e-8), value.item()

    def search(self, game):
        tree = GumbelTree(BOARD * BOARD)
        priors, _ = self.evaluate(game)
        tree.make_root(priors)
        for _ in range(SIMULATIONS):
            leaf, path = tree.traverse()
            position = game.after(path)
            if position.won(1 - position.player):
                tree.back_propagate(leaf, 1.0)
                continue
            priors, value = self.evaluate(position)
            tree.expand(leaf, priors)
            tree.back_propagate(leaf, -value)
        visits = (tree.visits() + 1e-3) * game.legal()
        return visits / visits.sum()

    def learn(self):
        chosen = [self.memory[int(index)] for index in np.random.randint(len(self.memory), size=32)]
        planes, policies = (torch.from_numpy(np.stack(column)) for column in zip(*chosen))
        logits, _ = self.network(planes)
        loss = nn.functional.cross_entropy(logits, policies)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    np.random.seed(0)
    agent, game, games = AlphaZero(), Gomoku(), 0
    for move in range(MOVES):
        end = time.monotonic() + MOVE_SECONDS
        policy = agent.search(game)
        agent.memory.append((game.planes(), policy.astype(np.float32)))
        game.play(int(np.random.choice(len(policy), p=policy)))
        if game.won(1 - game.player) or not game.legal().any():
            game, games = Gomoku(), games + 1
        while True:
            loss = agent.learn()
            if time.monotonic() > end:
                break
        if move % 10 == 0:
            print(f"move {move}: {games} games, {len(agent.memory)} positions, loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
