"""Deep Q learning with a replay memory"""

import random
import time

import numpy as np
import torch
from torch import nn


class DQN:
    def __init__(self, env, memory_limit, gamma=0.95, epsilon=1.0, decay=0.97, batch_size=32):
        self.env, self.memory_limit, self.gamma = env, memory_limit, gamma
        self.epsilon, self.decay, self.batch_size = epsilon, decay, batch_size
        self.replay = []

    def init_model(self, side):
        first = nn.Conv2d(1, 8, 6, stride=4)
        width = 8 * ((side - 6) // 4 + 1) ** 2
        self.model = nn.Sequential(first, nn.ReLU(), nn.Flatten(), nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-4)

    def action(self, state):
        if random.random() < self.epsilon:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.model(torch.from_numpy(state)[None, None]).argmax())

    def train_replay(self):
        batch = random.sample(self.replay, self.batch_size)
        states = torch.from_numpy(np.stack([one[0] for one in batch]))[:, None]
        following = torch.from_numpy(np.stack([one[1] for one in batch]))[:, None]
        actions = torch.tensor([one[2] for one in batch])
        rewards = torch.tensor([one[3] for one in batch])
        going = torch.tensor([not one[4] for one in batch])
        with torch.no_grad():
            targets = rewards + self.gamma * going * self.model(following).amax(1)
        values = self.model(states).gather(1, actions[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(values, targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def play(self, steps, step_s):
        """Plays episode after episode; trains whenever it is ahead of the clock of the game"""
        begin, played, episode, loss = time.monotonic(), 0, 0, 0.0
        while played < steps:
            state, done, score = self.env.reset(), False, 0
            while not done and score < 200:
                action = self.action(state)
                new_state, reward, done = self.env.step(action)
                self.replay.append([state, new_state, action, reward, done])
                state, score, played = new_state, score + 1, played + 1
                while len(self.replay) > self.batch_size and time.monotonic() < begin + played * step_s:
                    loss = self.train_replay()

            # Remove old entries from replay memory
            if len(self.replay) > self.memory_limit:
                self.replay.pop(0)
            self.epsilon = max(0.05, self.epsilon * self.decay)
            episode += 1
            if episode % 40 == 0:
                print(f"episode {episode}: {played} steps, score {score}, loss {loss:.4f}", flush=True)
