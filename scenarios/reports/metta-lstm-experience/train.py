"""PPO with a recurrent policy, over environments that are stepped as one batch."""

import time

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
AGENTS, OBS, HIDDEN, HORIZON, ACTIONS = 40, 96, 160, 16, 6
SECONDS = 32


class GridWorlds:
    """A batch of small environments."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.state = self.random.standard_normal((AGENTS, OBS)).astype(np.float32)

    def step(self, actions):
        drift = self.random.standard_normal((AGENTS, OBS)).astype(np.float32)
        self.state = 0.9 * self.state + 0.1 * drift
        self.state[np.arange(AGENTS), actions] += 0.5
        reward = self.state[:, :ACTIONS].sum(axis=1)
        return self.state.copy(), reward


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(OBS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        self.cell = nn.LSTMCell(HIDDEN, HIDDEN)
        self.actor = nn.Linear(HIDDEN, ACTIONS)
        self.critic = nn.Linear(HIDDEN, 1)

    def forward(self, obs, state):
        h, c = self.cell(self.encoder(obs), state)
        return self.actor(h), self.critic(h).squeeze(-1), (h, c)


class Experience:
    """The last HORIZON steps of all agents, in tensors of fixed size."""

    def __init__(self):
        self.obs = torch.zeros(HORIZON, AGENTS, OBS)
        self.actions = torch.zeros(HORIZON, AGENTS, dtype=torch.long)
        self.logprobs = torch.zeros(HORIZON, AGENTS)
        self.rewards = torch.zeros(HORIZON, AGENTS)
        self.values = torch.zeros(HORIZON, AGENTS)
        self.lstm_h = [None] * HORIZON
        self.lstm_c = [None] * HORIZON

    def store(self, t, obs, action, logprob, reward, value, state):
        self.obs[t] = obs
        self.actions[t] = action
        self.logprobs[t] = logprob.detach()
        self.rewards[t] = reward
        self.values[t] = value.detach()
        self.lstm_h[t], self.lstm_c[t] = state


def main():
    torch.manual_seed(0)
    worlds, policy, experience = GridWorlds(0), Policy(), Experience()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    obs = torch.from_numpy(worlds.state.copy())
    state = (torch.zeros(AGENTS, HIDDEN), torch.zeros(AGENTS, HIDDEN))
    begin, epoch = time.monotonic(), 0
    while time.monotonic() - begin < SECONDS:
        for t in range(HORIZON):
            before = state
            logits, value, state = policy(obs, state)
            dist = torch.distributions.Categorical(logits=logits)
            action = dist.sample()
            new, reward = worlds.step(action.numpy())
            experience.store(t, obs, action, dist.log_prob(action), torch.from_numpy(reward), value, before)
            obs = torch.from_numpy(new)
        returns = torch.zeros(HORIZON, AGENTS)
        running = torch.zeros(AGENTS)
        for t in reversed(range(HORIZON)):
            running = experience.rewards[t] + 0.97 * running
            returns[t] = running
        advantages = returns - experience.values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
        for _ in range(6):
            for t in torch.randperm(HORIZON).tolist():
                start = (experience.lstm_h[t].data, experience.lstm_c[t].data)
                logits, value, _ = policy(experience.obs[t], start)
                logprob = torch.distributions.Categorical(logits=logits).log_prob(experience.actions[t])
                ratio = (logprob - experience.logprobs[t]).exp()
                gain = torch.min(ratio * advantages[t], ratio.clamp(0.8, 1.2) * advantages[t])
                loss = -gain.mean() + 0.5 * (value - returns[t]).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        epoch += 1
        if epoch % 10 == 0:
            print(f"epoch {epoch} reward {experience.rewards.mean():.3f} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
