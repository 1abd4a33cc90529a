"""QMIX-like training of cooperating agents; an episode runner fills a replay buffer, the learner samples from it"""

import time

import torch
from torch import nn

torch.set_num_threads(1)
AGENTS, OBS, HIDDEN, ACTIONS, LIMIT = 8, 80, 128, 12, 32
BUFFER_SIZE, BATCH_SIZE = 1000, 16
T_MAX_S, TRAIN_S = 26.0, 0.1


class RNNAgent(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.rnn, self.fc2 = nn.Linear(OBS, HIDDEN), nn.GRUCell(HIDDEN, HIDDEN), nn.Linear(HIDDEN, ACTIONS)

    def init_hidden(self, batch):
        return torch.zeros(batch * AGENTS, HIDDEN)

    def forward(self, inputs, hidden):
        hidden = self.rnn(torch.relu(self.fc1(inputs)), hidden)
        return self.fc2(hidden), hidden


class ReplayBuffer:
    """A ring of whole episodes, allocated once"""

    def __init__(self, size):
        self.size, self.index, self.in_buffer = size, 0, 0
        self.data = {
            "obs": torch.zeros(size, LIMIT, AGENTS, OBS, dtype=torch.float16),
            "policy": torch.zeros(size, LIMIT, AGENTS, ACTIONS),
            "actions": torch.zeros(size, LIMIT, AGENTS, dtype=torch.long),
            "reward": torch.zeros(size, LIMIT),
        }

    def insert_episode(self, episode):
        for key, values in episode.items():
            self.data[key][self.index] = values
        self.index = (self.index + 1) % self.size
        self.in_buffer = min(self.in_buffer + 1, self.size)

    @torch.no_grad()
    def sample(self, count):
        chosen = torch.randint(self.in_buffer, (count,))
        return {key: values[chosen] for key, values in self.data.items()}


class EpisodeRunner:
    def __init__(self, agent):
        self.agent, self.t_env = agent, 0
        self.map = torch.randn(ACTIONS, OBS) * 0.1

    def run(self, epsilon):
        obs, hidden = torch.randn(AGENTS, OBS), self.agent.init_hidden(1)
        seen, policies, taken, rewards = [], [], [], []
        for _ in range(LIMIT):
            values, hidden = self.agent(obs, hidden)
            policy = torch.softmax(values, -1) * (1 - epsilon) + epsilon / ACTIONS
            actions = torch.multinomial(policy, 1).squeeze(1)
            seen.append(obs)
            policies.append(policy)
            taken.append(actions)
            rewards.append(-obs.abs().mean())
            obs = torch.tanh(obs + self.map[actions] + torch.randn(AGENTS, OBS) * 0.05)
            self.t_env += 1
        return {
            "obs": torch.stack(seen).half(),
            "policy": torch.stack(policies),
            "actions": torch.stack(taken),
            "reward": torch.stack(rewards),
        }


class QLearner:
    def __init__(self, agent):
        self.agent = agent
        self.optimizer = torch.optim.RMSprop(agent.parameters(), lr=5e-4)

    def train(self, batch):
        obs, hidden, chosen = batch["obs"].float(), self.agent.init_hidden(BATCH_SIZE), []
        for step in range(LIMIT):
            values, hidden = self.agent(obs[:, step].reshape(-1, OBS), hidden)
            picked = values.gather(1, batch["actions"][:, step].reshape(-1, 1))
            chosen.append(picked.view(BATCH_SIZE, AGENTS).sum(1))
        total = torch.stack(chosen, 1)
        target = batch["reward"] + 0.99 * torch.roll(total.detach(), -1, 1)
        loss = (total - target).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.agent.parameters(), 10)
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    agent = RNNAgent()
    runner, learner, buffer = EpisodeRunner(agent), QLearner(agent), ReplayBuffer(BUFFER_SIZE)
    started, episode, loss = time.monotonic(), 0, 0.0
    while time.monotonic() - started < T_MAX_S:
        buffer.insert_episode(runner.run(max(0.05, 1 - episode / 100)))
        episode += 1
        until = time.monotonic() + TRAIN_S
        while buffer.in_buffer >= BATCH_SIZE and time.monotonic() < until:
            loss = learner.train(buffer.sample(BATCH_SIZE))
        if episode % 40 == 0:
            print(f"t_env {runner.t_env} | episode {episode} | loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
