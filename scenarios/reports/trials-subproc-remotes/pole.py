"""A pole on a cart, with the forces of the cart's wheels worked out in small steps"""

import functools
import math
import random

import numpy as np

SUBSTEPS, LIMIT = 12, 200


class Pole:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def reset(self):
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        self.steps = 0
        return np.array(self.state, np.float32)

    def step(self, action):
        x, speed, angle, turning = self.state
        force, step = (10.0 if action else -10.0), 0.02 / SUBSTEPS
        for _ in range(SUBSTEPS):
            sine, cosine = math.sin(angle), math.cos(angle)
            common = (force + 0.05 * turning * turning * sine - 0.02 * speed) / 1.1
            twist = (9.8 * sine - cosine * common) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
            x, angle = x + step * speed, angle + step * turning
            speed, turning = speed + step * (common - 0.05 * twist * cosine / 1.1), turning + step * twist
        self.state = [x, speed, angle, turning]
        self.steps += 1
        done = abs(x) > 2.4 or abs(angle) > 0.21 or self.steps >= LIMIT
        info = {
            "steps": self.steps,
            "state": list(self.state),
            "forces": [force, common, twist],
            "margins": self.margins(),
        }
        return np.array(self.state, np.float32), 1.0, done, info

    def margins(self):
        """How far it is from either end, and how far from falling to either side"""
        x, _, angle, _ = self.state
        return [[2.4 - x, 2.4 + x], [0.21 - angle, 0.21 + angle]]


def makers(count, seed):
    return [functools.partial(Pole, seed + number) for number in range(count)]


def demonstrations(count, copies, seed):
    """Steps of a controller that balances the pole by hand, each with some noisy copies of what it has seen"""
    pole, source, steps = Pole(seed), random.Random(seed), []
    observation = pole.reset()
    for _ in range(count):
        seen = x, speed, angle, turning = observation.tolist()
        action = int(angle + 0.3 * turning + 0.05 * speed + 0.01 * x > 0)
        for _ in range(copies):
            noise = source.random() * 0.01
            steps.append({"observation": [value + noise for value in seen], "action": action})
        observation, _, done, _ = pole.step(action)
        if done:
            observation = pole.reset()
    return steps
