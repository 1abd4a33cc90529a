"""Policy gradient on a ball game from pixels; one update for every four episodes"""

import time

import numpy as np
import torch
from torch import nn

SECONDS, EPISODES, LONGEST = 29.0, 4, 800
SIDE = 80


class Court:
    """A ball that the player has to return; an episode is over when it is missed"""

    def __init__(self, generator):
        self.generator = generator

    def reset(self, skill, longest):
        self.ball = np.array([40.0, self.generator.uniform(10, 70)])
        self.speed = np.array([self.generator.choice((-2.0, 2.0)), self.generator.uniform(-1.5, 1.5)])
        self.paddle, self.steps = 40.0, 0
        self.skill, self.longest = skill, longest
        return self.draw()

    def draw(self):
        screen = np.zeros((160, 160, 3), np.uint8)
        screen[:, :, 0] = 20
        x, y = (self.ball * 2).astype(int)
        screen[max(y - 2, 0) : y + 3, max(x - 2, 0) : x + 3] = 230
        screen[int(self.paddle * 2) - 8 : int(self.paddle * 2) + 8, 150:154] = 180
        return screen

    def step(self, action):
        self.steps += 1
        self.paddle = float(np.clip(self.paddle + (2.0 if action else -2.0), 6, 74))
        self.ball += self.speed
        if not 2 < self.ball[1] < 78:
            self.speed[1] = -self.speed[1]
            self.ball[1] = np.clip(self.ball[1], 2, 78)
        if self.ball[0] < 3:
            self.speed[0] = abs(self.speed[0])
        reward = 0.0
        if self.ball[0] > 75:
            reached = abs(self.ball[1] - self.paddle) < 8 or self.generator.random() < self.skill
            reward = 1.0 if reached else -1.0
            self.speed[0] = -abs(self.speed[0])
            if not reached:
                return self.draw(), reward, True
        return self.draw(), reward, self.steps >= self.longest


def prepare(screen):
    return screen[::2, ::2].max(axis=2).astype(np.float32).ravel() / 255.0


def play(court, policy, update, generator):
    """Frames, actions and discounted rewards of an episode"""
    skill = min(0.35 + 0.08 * update, 1.0)
    previous = prepare(court.reset(skill, LONGEST))
    screen, frames, actions, rewards, done = court.draw(), [], [], [], False
    while not done:
        current = prepare(screen)
        frames.append(current - previous)
        previous = current
        with torch.no_grad():
            up = torch.sigmoid(policy(torch.from_numpy(frames[-1]))).item()
        actions.append(float(generator.random() < up))
        screen, reward, done = court.step(actions[-1])
        rewards.append(reward)
    running, discounted = 0.0, np.zeros(len(rewards), np.float32)
    for step in range(len(rewards) - 1, -1, -1):
        running = rewards[step] + (0.0 if rewards[step] else 0.99 * running)
        discounted[step] = running
    return frames, actions, discounted


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    policy = nn.Sequential(nn.Linear(SIDE * SIDE, 200), nn.ReLU(), nn.Linear(200, 1))
    optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-4)
    court, update, started = Court(generator), 0, time.monotonic()
    while time.monotonic() - started < SECONDS:
        frames, actions, rewards = [], [], []
        for _ in range(EPISODES):
            for kept, new in zip((frames, actions, rewards), play(court, policy, update, generator)):
                kept.extend(new)
        batch = torch.from_numpy(np.stack(frames))
        advantage = torch.tensor(np.array(rewards))
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        logits = policy(batch)[:, 0]
        losses = nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(actions), reduction="none")
        optimizer.zero_grad()
        (losses * advantage).mean().backward()
        optimizer.step()
        update += 1
        print(f"update {update}: {len(frames) / EPISODES:.0f} steps an episode", flush=True)


if __name__ == "__main__":
    main()
