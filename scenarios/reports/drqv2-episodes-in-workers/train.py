"""Pixel control: the agent writes episodes to files, the loader's workers fetch them and hold the newest in memory."""

import io
import os
import random
import tempfile
import time
import traceback

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SECONDS = 28.0
EPISODE_LENGTH, WORKERS, REPLAY_BUFFER_SIZE = 60, 2, 6400


class ReplayBufferStorage:
    def __init__(self, folder):
        self.folder, self.number = folder, 0

    def store(self, episode):
        buffer = io.BytesIO()
        np.savez(buffer, **episode)
        name = f"{self.number:06d}_{EPISODE_LENGTH}.npz"
        with open(os.path.join(self.folder, "." + name), "wb") as file:
            file.write(buffer.getvalue())
        os.rename(os.path.join(self.folder, "." + name), os.path.join(self.folder, name))
        self.number += 1


class ReplayBuffer(IterableDataset):
    def __init__(self, folder, max_size, fetch_every=20):
        self.folder, self.max_size, self.fetch_every = folder, max_size, fetch_every
        self.size, self.episode_names, self.episodes, self.since_fetch = 0, [], {}, fetch_every

    def store_episode(self, name):
        try:
            with np.load(os.path.join(self.folder, name)) as file:
                episode = {key: file[key] for key in file.files}
        except OSError:
            return False
        while self.size + EPISODE_LENGTH > self.max_size:
            del self.episodes[self.episode_names.pop(0)]
            self.size -= EPISODE_LENGTH
        self.episode_names.append(name)
        self.episodes[name] = episode
        self.size += EPISODE_LENGTH
        os.unlink(os.path.join(self.folder, name))
        return True

    def try_fetch(self):
        if self.since_fetch < self.fetch_every:
            return
        self.since_fetch = 0
        worker = get_worker_info()
        for name in sorted(name for name in os.listdir(self.folder) if name.endswith(".npz")):
            if int(name[:6]) % worker.num_workers == worker.id and name not in self.episodes:
                self.store_episode(name)

    def __iter__(self):
        while True:
            try:
                self.try_fetch()
            except OSError:
                traceback.print_exc()
            self.since_fetch += 1
            episode = self.episodes[random.choice(self.episode_names)]
            start = np.random.randint(0, EPISODE_LENGTH - 3)
            observation = episode["observation"]
            yield observation[start], episode["action"][start], episode["reward"][start], observation[start + 3]


class Environment:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def episode(self):
        background = self.rng.integers(0, 255, (9, 64, 64), dtype=np.uint8)
        frames = np.stack([np.roll(background, n, axis=2) for n in range(EPISODE_LENGTH)])
        action = self.rng.normal(size=(EPISODE_LENGTH, 6)).astype(np.float32)
        return {"observation": frames, "action": action, "reward": action.sum(axis=1)}


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.convnet = nn.Sequential(
            nn.Conv2d(9, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 16, 3, stride=2), nn.ReLU()
        )
        self.critic = nn.Sequential(nn.Linear(16 * 15 * 15 + 6, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, observation, action):
        return self.critic(torch.cat([self.convnet(observation.float() / 255).flatten(1), action], dim=1))[:, 0]


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        storage, environment = ReplayBufferStorage(folder), Environment()
        for _ in range(2 * WORKERS):
            storage.store(environment.episode())
        buffer = ReplayBuffer(folder, max_size=REPLAY_BUFFER_SIZE // WORKERS)
        replay = iter(DataLoader(buffer, batch_size=32, num_workers=WORKERS))
        encoder = Encoder()
        optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-4)
        end, step = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            observation, action, reward, following = next(replay)
            target = reward + 0.9 * encoder(following, action).detach()
            loss = (encoder(observation, action) - target).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 2 == 0:
                storage.store(environment.episode())
            if step % 40 == 0:
                print(f"step {step} loss {loss.item():.3f} episodes {storage.number}", flush=True)
            step += 1
        del replay


if __name__ == "__main__":
    main()
