"""Advantage actor critic over vectorized environments"""

import torch
from torch import nn

torch.set_num_threads(1)
STEPS, GAMMA = 16, 0.99


class Policy(nn.Module):
    def __init__(self, observation, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observation, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.pi, self.value = nn.Linear(128, actions), nn.Linear(128, 1)

    def forward(self, observations):
        hidden = self.body(observations)
        return torch.distributions.Categorical(logits=self.pi(hidden)), self.value(hidden).squeeze(-1)


class A2C:
    def __init__(self, env, observation, actions):
        torch.manual_seed(0)
        self.env, self.policy = env, Policy(observation, actions)
        self.optimizer = torch.optim.RMSprop(self.policy.parameters(), lr=7e-4)
        self.observations = torch.from_numpy(env.reset())

    def learn_once(self):
        log_probabilities, values, entropies, rewards, masks = [], [], [], [], []
        for _ in range(STEPS):
            distribution, value = self.policy(self.observations)
            actions = distribution.sample()
            observations, reward, done = self.env.step(actions.tolist())
            log_probabilities.append(distribution.log_prob(actions))
            entropies.append(distribution.entropy())
            values.append(value)
            rewards.append(torch.from_numpy(reward))
            masks.append(torch.from_numpy(~done).float())
            self.observations = torch.from_numpy(observations)
        with torch.no_grad():
            running = self.policy(self.observations)[1]
        returns = []
        for reward, mask in zip(reversed(rewards), reversed(masks)):
            running = reward + GAMMA * mask * running
            returns.append(running)
        advantages = torch.stack(returns[::-1]) - torch.stack(values)
        actor = -(torch.stack(log_probabilities) * advantages.detach()).mean()
        loss = actor + 0.5 * advantages.pow(2).mean() - 0.01 * torch.stack(entropies).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
        self.optimizer.step()
        return STEPS * self.env.num_envs
