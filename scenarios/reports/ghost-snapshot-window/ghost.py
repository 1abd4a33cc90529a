"""The ghost trainer: keeps former versions of a policy, and lets it play against one of them"""

import random

import numpy as np


def get_weights(policy):
    return {name: value.detach().numpy().copy() for name, value in policy.state_dict().items()}


class GhostTrainer:
    def __init__(self, policy, opponent, window, latest_ratio):
        self.policy, self.opponent = policy, opponent
        self.window, self.latest_ratio = window, latest_ratio
        self.policy_snapshots, self.snapshot_counter = [], 0
        self.policy_elos = [1200.0] * (window + 1)
        self.current_opponent = -1
        self.picker = random.Random(0)

    def save_snapshot(self):
        weights = get_weights(self.policy)
        if self.snapshot_counter < len(self.policy_snapshots):
            self.policy_snapshots[self.snapshot_counter] = weights
        else:
            self.policy_snapshots.append(weights)
        self.policy_elos[self.snapshot_counter] = self.policy_elos[-1]
        self.snapshot_counter = (self.snapshot_counter + 1) % self.window

    def swap_snapshot(self):
        if self.picker.random() < self.latest_ratio:
            self.current_opponent = (self.snapshot_counter - 1) % len(self.policy_snapshots)
        else:
            self.current_opponent = self.picker.randrange(len(self.policy_snapshots))
        own = self.opponent.state_dict()
        for name, value in self.policy_snapshots[self.current_opponent].items():
            np.copyto(own[name].numpy(), value)

    def update_elo(self, wins, losses):
        if wins + losses:
            expected = 1 / (1 + 10 ** ((self.policy_elos[self.current_opponent] - self.policy_elos[-1]) / 400))
            self.policy_elos[-1] += 8 * (wins / (wins + losses) - expected)
