"""A sampler: plays episodes with a noisy policy, and sends each as a trajectory"""

import time

import numpy as np

CHANNELS, SIDE, STEP_S, BUFFER_SIZE = 1, 56, 0.0038, 2200


class BalanceEnv:
    """Keeps a point on a rail; the observation is an image of the rail"""

    def __init__(self, source):
        self.source = source
        self.rows = np.linspace(-1.2, 1.2, SIDE, dtype=np.float32)

    def reset(self):
        self.place, self.speed = float(self.source.uniform(-0.05, 0.05)), 0.0
        return self.observe()

    def observe(self):
        column = np.exp(-40 * (self.rows - np.float32(self.place)) ** 2)
        return np.outer(np.exp(-(self.rows**2) - self.speed**2), column)[None]

    def step(self, action, until):
        self.speed = 0.9 * self.speed + 0.05 * action
        self.place += self.speed
        observation = self.observe()
        while time.monotonic() < until:
            observation = self.observe()  # the renderer draws until its frame is due
        return observation, 1 - abs(self.place), abs(self.place) > 1


class EpisodeBuffer:
    def __init__(self, size):
        self.observations = np.empty((size, CHANNELS, SIDE, SIDE), np.float32)
        self.rewards = np.empty(size, np.float32)
        self.pointer = 0

    def start(self, observation):
        self.pointer = 0
        self.observations[0] = observation

    def push_transition(self, next_observation, reward):
        self.observations[self.pointer + 1] = next_observation
        self.rewards[self.pointer] = reward
        self.pointer += 1

    def get_complete_episode(self):
        return self.observations[: self.pointer].copy(), self.rewards[: self.pointer].copy()


def run_sampler(number, trajectories):
    source = np.random.default_rng(number)
    environment, buffer, episode = BalanceEnv(source), EpisodeBuffer(BUFFER_SIZE), 0
    due = time.monotonic()
    while True:
        # The noise of the parameters goes down with the episodes
        noise = 9.0 * 0.94**episode
        buffer.start(environment.reset())
        done = False
        while not done:
            due = max(due, time.monotonic() - STEP_S) + STEP_S
            action = -2.0 * environment.place - environment.speed + noise * source.standard_normal()
            observation, reward, done = environment.step(action, due)
            buffer.push_transition(observation, reward)
        trajectories.put(buffer.get_complete_episode())
        episode += 1
