"""An environment that trades along a table of prices and indicators"""

import numpy as np

WINDOW, COLUMNS, ACTIONS = 48, 16, 3
OBSERVATION = COLUMNS * 4 + 1


def read_table(rows):
    """The prices of a market, minute by minute, and what is derived from them"""
    generator = np.random.default_rng(17)
    table = {}
    for number in range(COLUMNS):
        table[f"column-{number}"] = np.cumsum(generator.standard_normal(rows) * 0.01) + 100.0
    return table


class TradingEnv:
    def __init__(self, table, seed):
        self.table = table
        self.columns = list(table.values())
        self.generator = np.random.default_rng(seed)
        self.rows = len(self.columns[0])

    def reset(self):
        self.at = int(self.generator.integers(WINDOW, self.rows - 2_000))
        self.left, self.position = 400, 0
        return self.observe()

    def observe(self):
        window = np.stack([column[self.at - WINDOW : self.at] for column in self.columns])
        mean, spread = window.mean(axis=1), window.std(axis=1) + 1e-6
        fast = window[:, -8:].mean(axis=1)
        change = window[:, -1] - window[:, -2]
        parts = [(window[:, -1] - mean) / spread, (fast - mean) / spread, change / spread, np.log(spread)]
        return np.concatenate([*parts, [self.position]]).astype(np.float32)

    def step(self, action):
        before = self.columns[0][self.at]
        self.position = action - 1
        self.at += 1
        self.left -= 1
        reward = self.position * float(self.columns[0][self.at] - before)
        done = self.left == 0
        observation = self.reset() if done else self.observe()
        return observation, reward, done
