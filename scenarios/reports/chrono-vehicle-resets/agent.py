"""The policy and its update."""

import torch

torch.set_num_threads(1)


class Agent:
    def __init__(self):
        self.policy = torch.nn.Sequential(torch.nn.Linear(12, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-4)
        self.logs = []

    def act(self, states):
        chosen = torch.distributions.Normal(self.policy(torch.from_numpy(states).float()), 0.3)
        action = chosen.sample()
        self.logs.append(chosen.log_prob(action).sum(-1))
        return action.numpy()

    def learn(self, rewards):
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.stack(self.logs) * returns).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.logs.clear()
