"""PPO2: n_steps of observations, image sequences and joints, are collected in lists, and used for an update."""

import numpy as np
import torch

ENVS = 2
N_STEPS = 500
UPDATES = 7
EPOCHS = 2
MINIBATCH = 100
IMAGE = 96, 96, 12


class Arm:
    """Renders a sequence of frames of a moving arm."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.joints = np.zeros(7, np.float32)
        self.grid = np.indices(IMAGE[:2]).sum(0)

    def render(self):
        frames = [((self.grid * (at + 1) + self.joints.sum() * 40) % 255) for at in range(IMAGE[2])]
        return np.stack(frames, -1).astype(np.uint8)

    def step(self, action):
        self.joints += 0.05 * action
        if np.abs(self.joints).max() > 3:
            self.joints[:] = self.random.uniform(-1, 1, 7)
        return self.render(), self.joints.copy(), -float(np.square(self.joints).sum())


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.look = torch.nn.Sequential(
            torch.nn.Conv2d(IMAGE[2], 16, 8, 4), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 4, 2), torch.nn.Flatten()
        )
        self.head = torch.nn.Linear(16 * 10 * 10 + 7, 8)

    def forward(self, images, joints):
        seen = self.look(torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255)
        return self.head(torch.cat([seen, torch.from_numpy(joints)], 1))


class Runner:
    def __init__(self, model):
        self.model = model
        self.envs = [Arm(seed) for seed in range(ENVS)]
        self.obs = np.zeros((ENVS, *IMAGE), np.uint8)
        self.joints = np.zeros((ENVS, 7), np.float32)

    def run(self):
        images, joints, actions, rewards = [], [], [], []
        for _ in range(N_STEPS):
            with torch.no_grad():
                action = self.model(self.obs, self.joints)[:, :7].numpy()
            action = action + np.random.standard_normal(action.shape).astype(np.float32)
            images.append(self.obs.copy())
            joints.append(self.joints.copy())
            actions.append(action)
            results = [env.step(one) for env, one in zip(self.envs, action, strict=True)]
            self.obs[:] = [image for image, _, _ in results]
            self.joints[:] = [joint for _, joint, _ in results]
            rewards.append([reward for _, _, reward in results])
        flat = [np.asarray(one).reshape(N_STEPS * ENVS, *np.shape(one)[2:]) for one in (images, joints, actions)]
        return *flat, np.asarray(rewards, np.float32).reshape(-1)


def main():
    torch.set_num_threads(1)
    model = Policy()
    optimizer = torch.optim.Adam(model.parameters(), lr=2.5e-4)
    runner = Runner(model)
    for update in range(UPDATES):
        images, joints, actions, rewards = runner.run()
        returns = torch.from_numpy((rewards - rewards.mean()) / (rewards.std() + 1e-6))
        for _ in range(EPOCHS):
            order = np.random.permutation(len(images))
            for first in range(0, len(order), MINIBATCH):
                at = order[first : first + MINIBATCH]
                out = model(images[at], joints[at])
                surrogate = ((out[:, :7] - torch.from_numpy(actions[at])) ** 2).mean(1) * returns[at]
                loss = surrogate.mean() + (out[:, 7] - returns[at]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"update {update}: reward {rewards.mean():.3f}, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
