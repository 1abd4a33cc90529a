"""An evaluator: steps its environments with the policy, and puts each batch of samples into the object store"""

import time

import torch
from store import PlasmaClient
from torch import nn

FEATURES, ACTIONS, ENVIRONMENTS, STEPS, BATCH_S = 510, 6, 32, 26, 0.15


def policy_network():
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, ACTIONS))


class Environments:
    """Drifting states, which the right actions keep near zero"""

    def __init__(self, number):
        self.generator = torch.Generator().manual_seed(number)
        self.state = torch.randn(ENVIRONMENTS, FEATURES, generator=self.generator)
        self.effects = torch.randn(ACTIONS, FEATURES, generator=torch.Generator().manual_seed(99))

    def step(self, actions):
        noise = torch.randn(ENVIRONMENTS, FEATURES, generator=self.generator)
        self.state = 0.95 * self.state + 0.1 * self.effects[actions] + 0.2 * noise
        return -self.state.square().mean(1)


class PolicyEvaluator:
    def __init__(self, number):
        self.policy, self.environments = policy_network(), Environments(number)

    @torch.no_grad()
    def sample(self):
        """A batch of samples; for each of its steps the environments simulate as finely as there is time"""
        rows = []
        for _ in range(STEPS):
            until = time.monotonic() + BATCH_S / STEPS
            observations = self.environments.state
            actions = torch.distributions.Categorical(logits=self.policy(observations)).sample()
            rewards = self.environments.step(actions)
            while time.monotonic() < until:
                rewards = 0.5 * (rewards + self.environments.step(actions))
            rows.append(torch.cat([observations, actions[:, None].float(), rewards[:, None]], 1))
        return torch.cat(rows)


def run_evaluator(pipe, path, number):
    torch.set_num_threads(1)
    client, evaluator = PlasmaClient(path), PolicyEvaluator(number)
    while (weights := pipe.recv()) is not None:
        if weights:
            evaluator.policy.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
        samples = evaluator.sample()
        pipe.send(client.put(memoryview(samples.numpy().reshape(-1)).cast("B")))
    client.close()
