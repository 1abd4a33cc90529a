"""A pole on a cart, seen as a picture"""

import math

import numpy as np

SIDE = 52


class CartPole:
    def __init__(self, seed):
        self.numbers = np.random.default_rng(seed)
        self.columns = np.arange(SIDE, dtype=np.float32)

    def reset(self):
        self.state = self.numbers.uniform(-0.05, 0.05, 4)
        return self.render()

    def step(self, action):
        x, speed, angle, turning = self.state
        force = 10.0 if action == 1 else -10.0
        pushed = (force + 0.05 * turning**2 * math.sin(angle)) / 1.1
        spin = (9.8 * math.sin(angle) - math.cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        push = pushed - 0.05 * spin * math.cos(angle) / 1.1
        self.state = np.array([x + 0.02 * speed, speed + 0.02 * push, angle + 0.02 * turning, turning + 0.02 * spin])
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.render(), 1.0, bool(done)

    def render(self):
        """The picture of the cart and the pole, in floats from 0 to 1"""
        x, _, angle, _ = self.state
        centre = (x / 4.8 + 0.5) * SIDE
        picture = np.zeros((SIDE, SIDE), np.float32)
        picture[-4:] = np.exp(-(((self.columns - centre) / 4) ** 2))
        tilt = centre + self.columns[: SIDE - 4] * math.sin(angle)
        picture[: SIDE - 4] = np.exp(-((self.columns[None] - tilt[::-1, None]) ** 2))
        return picture
