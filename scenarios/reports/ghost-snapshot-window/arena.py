"""The environment: many matches of two players who chase the same ball; reads actions, and writes what both see"""

import sys

import numpy as np

MATCHES, STEP, LENGTH, FEATURES = 24, 0.12, 60, 32


class Arena:
    def __init__(self):
        self.generator = np.random.default_rng(0)
        self.players = np.zeros((MATCHES, 2, 2), np.float32)
        self.ball = np.zeros((MATCHES, 2), np.float32)
        self.clock = np.zeros(MATCHES, np.int64)
        self.projection = self.generator.standard_normal((6, FEATURES)).astype(np.float32)
        self.reset(np.arange(MATCHES))

    def reset(self, which):
        self.players[which] = self.generator.uniform(-1, 1, (len(which), 2, 2))
        self.ball[which] = self.generator.uniform(-1, 1, (len(which), 2))
        self.clock[which] = self.generator.integers(0, 10, len(which))

    def observe(self):
        views = []
        for side in (0, 1):
            seen = [self.players[:, side], self.players[:, 1 - side], self.ball]
            views.append(np.tanh(np.concatenate(seen, 1) @ self.projection))
        return np.stack(views).astype(np.float32)

    def step(self, actions):
        """Moves the players; who reaches the ball first gets the point"""
        moves = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]], np.float32) * STEP
        self.players = np.clip(self.players + moves[actions.T], -1.2, 1.2)
        distance = np.linalg.norm(self.players - self.ball[:, None], axis=2)
        reached = distance < 0.15
        rewards = reached[:, 0].astype(np.float32) - reached[:, 1]
        self.clock += 1
        over = np.flatnonzero(reached.any(1) | (self.clock > LENGTH))
        self.reset(over)
        return rewards


def main():
    arena, commands, out = Arena(), sys.stdin.buffer, sys.stdout.buffer
    rewards = np.zeros(MATCHES, np.float32)
    while True:
        out.write(arena.observe().tobytes() + rewards.tobytes())
        out.flush()
        actions = commands.read(2 * MATCHES)
        if len(actions) < 2 * MATCHES:
            break
        rewards = arena.step(np.frombuffer(actions, np.int8).reshape(2, MATCHES))


if __name__ == "__main__":
    main()
