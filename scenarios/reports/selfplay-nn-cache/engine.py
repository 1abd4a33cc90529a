"""An engine for a game of placing stones, by tree search with a network, that is spoken to in lines of text"""

import argparse
import collections
import math
import random
import sys
import time

import numpy as np
import torch

torch.set_num_threads(1)
SIDE, WIDTH, CHANNELS = 19, 24, 48
EVALUATION_S, MOVE_S = 0.002, 0.55
Result = collections.namedtuple("Result", "features policy value")


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Sequential(
            torch.nn.Conv2d(3, CHANNELS, 3, padding=1), torch.nn.ReLU(),
            torch.nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), torch.nn.ReLU(),
        )
        self.policy = torch.nn.Conv2d(CHANNELS, 1, 1)
        self.value = torch.nn.Linear(CHANNELS, 1)

    def forward(self, planes):
        features = self.trunk(planes)
        policy = (8 * self.policy(features)).flatten(1).softmax(1)
        return features, policy, torch.tanh(self.value(features.mean((2, 3))))


class NNCache:
    """Results of the network by the position; the oldest leave first"""

    def __init__(self, size):
        self.size, self.order, self.results = size, collections.deque(), {}

    def lookup(self, key):
        return self.results.get(key)

    def insert(self, key, result):
        self.results[key] = result
        self.order.append(key)
        while len(self.order) > self.size:
            del self.results[self.order.popleft()]


class Position:
    numbers = [[random.Random(3 * point + color).getrandbits(64) for color in (0, 1)] for point in range(SIDE * SIDE)]

    def __init__(self, stones=None, color=1, key=0):
        self.stones = np.zeros(SIDE * SIDE, np.int8) if stones is None else stones
        self.color, self.key = color, key

    def play(self, move):
        stones = self.stones.copy()
        stones[move] = self.color
        return Position(stones, -self.color, self.key ^ self.numbers[move][self.color > 0])

    def planes(self):
        planes = np.stack([self.stones == self.color, self.stones == -self.color, self.stones == 0])
        return torch.from_numpy(planes.astype(np.float32)).view(3, SIDE, SIDE)


class Node:
    __slots__ = ("prior", "visits", "total", "children")

    def __init__(self, prior):
        self.prior, self.visits, self.total, self.children = prior, 0, 0.0, None

    def score(self, scale):
        mean = self.total / self.visits if self.visits else 0.0
        return mean + 1.5 * self.prior * scale / (1 + self.visits)


class Engine:
    def __init__(self, cache):
        torch.manual_seed(5)
        self.network, self.cache = Network().eval(), NNCache(cache)
        self.generator = np.random.default_rng(5)
        self.clear_board()

    def clear_board(self):
        self.position, self.root = Position(), Node(1.0)

    def evaluate(self, position):
        """The network's result, as the mean over as many turns of the board as there is time for"""
        result = self.cache.lookup(position.key)
        if result is not None:
            return result
        until, planes = time.monotonic() + EVALUATION_S, position.planes()
        total, winrate, turns = torch.zeros(SIDE, SIDE), 0.0, 0
        while not turns or time.monotonic() < until:
            features, policy, value = self.network(torch.rot90(planes, turns % 4, (1, 2))[None])
            total += torch.rot90(policy.view(SIDE, SIDE), -(turns % 4), (0, 1))
            winrate += value.item()
            turns += 1
        result = Result(features[0].half().numpy(), (total / turns).flatten().numpy(), winrate / turns)
        self.cache.insert(position.key, result)
        return result

    def playout(self):
        path, node, position = [self.root], self.root, self.position
        while node.children:
            scale = math.sqrt(node.visits + 1)
            move, node = max(node.children.items(), key=lambda item: item[1].score(scale))
            position = position.play(move)
            path.append(node)
        result = self.evaluate(position)
        priors = result.policy * (position.stones == 0)
        best = np.argsort(-priors)[:WIDTH]
        node.children = {int(move): Node(float(priors[move])) for move in best}
        value = result.value
        for node in reversed(path):
            node.visits += 1
            node.total -= value
            value = -value

    def genmove(self):
        until = time.monotonic() + MOVE_S
        if not self.root.children:
            self.playout()
        children = self.root.children
        for child, noise in zip(children.values(), self.generator.dirichlet([0.3] * len(children)).tolist()):
            child.prior = 0.6 * child.prior + 0.4 * noise
        while time.monotonic() < until:
            self.playout()
        visits = np.array([child.visits + 0.01 for child in children.values()])
        move = int(self.generator.choice(list(children), p=visits / visits.sum()))
        self.position, self.root = self.position.play(move), children[move]
        return f"{'ABCDEFGHJKLMNOPQRST'[move % SIDE]}{move // SIDE + 1}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=int, required=True)
    engine = Engine(parser.parse_args().cache)
    with torch.inference_mode():
        for line in sys.stdin:
            command = line.split()
            answer = ""
            if command[0] == "genmove":
                answer = engine.genmove()
            elif command[0] == "clear_board":
                engine.clear_board()
            print(f"= {answer}\n", flush=True)
            if command[0] == "quit":
                break


if __name__ == "__main__":
    main()
