"""The replay buffer and the stack of frames of CURL"""

import collections

import numpy as np
import torch


class ReplayBuffer:
    """Transitions of stacked frames."""

    def __init__(self, obs_shape, action_shape, capacity, batch_size, image_size):
        self.capacity, self.batch_size, self.image_size = capacity, batch_size, image_size
        self.obses = np.empty((capacity, *obs_shape), dtype=np.uint8)
        self.next_obses = np.empty((capacity, *obs_shape), dtype=np.uint8)
        self.actions = np.empty((capacity, *action_shape), dtype=np.float32)
        self.rewards = np.empty((capacity, 1), dtype=np.float32)
        self.not_dones = np.empty((capacity, 1), dtype=np.float32)
        self.idx, self.full = 0, False

    def add(self, obs, action, reward, next_obs, done):
        np.copyto(self.obses[self.idx], obs)
        np.copyto(self.actions[self.idx], action)
        np.copyto(self.rewards[self.idx], reward)
        np.copyto(self.next_obses[self.idx], next_obs)
        np.copyto(self.not_dones[self.idx], not done)
        self.idx = (self.idx + 1) % self.capacity
        self.full = self.full or self.idx == 0

    def _crop(self, images):
        most = images.shape[-1] - self.image_size + 1
        left, top = np.random.randint(0, most, 2)
        return images[:, :, top : top + self.image_size, left : left + self.image_size]

    def sample_cpc(self):
        chosen = np.random.randint(0, self.capacity if self.full else self.idx, self.batch_size)
        obses, next_obses = self.obses[chosen], self.next_obses[chosen]
        anchor, positive, following = self._crop(obses), self._crop(obses), self._crop(next_obses)
        images = [torch.from_numpy(np.ascontiguousarray(crop)).float() / 255 for crop in (anchor, positive, following)]
        rest = [torch.from_numpy(values[chosen]) for values in (self.actions, self.rewards, self.not_dones)]
        return *images, *rest


class FrameStack:
    def __init__(self, env, count):
        self.env, self.frames = env, collections.deque(maxlen=count)

    def reset(self):
        frame = self.env.reset()
        self.frames.extend([frame] * self.frames.maxlen)
        return np.concatenate(self.frames)

    def step(self, action):
        frame, reward, done = self.env.step(action)
        self.frames.append(frame)
        return np.concatenate(self.frames), reward, done
