"""Policy gradient on a chain of joints by two rollout workers, with the info of each step as custom metrics"""

import multiprocessing
import time

import numpy as np
import torch

torch.set_num_threads(1)
SECONDS = 28.0
JOINTS, FRAGMENT = 10, 250


class ChainEnv:
    """A chain of joints that is pushed at its end; it is simulated for as long as one likes"""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        kinds = ("angle", "rate", "torque", "power", "energy", "load")
        self.names = [f"{kind}_{joint}" for kind in kinds for joint in range(JOINTS)]

    def reset(self):
        self.angle = self.generator.normal(0, 0.1, JOINTS)
        self.rate = np.zeros(JOINTS)
        return np.concatenate([self.angle, self.rate])

    def step(self, action):
        torque = np.zeros(JOINTS)
        torque[-1] = action
        for _ in range(8):
            stretch = np.diff(self.angle, prepend=0.0, append=self.angle[-1])
            acceleration = 40 * np.diff(stretch) - 4 * np.sin(self.angle) - 0.3 * self.rate + torque
            self.rate = self.rate + 0.004 * acceleration
            self.angle = self.angle + 0.004 * self.rate
        energy = 0.5 * self.rate**2 - 4 * np.cos(self.angle)
        values = np.concatenate([self.angle, self.rate, torque, torque * self.rate, energy, stretch[1:]])
        info = dict(zip(self.names, values.tolist()))
        return np.concatenate([self.angle, self.rate]), -float(energy.mean()), info


class Episode:
    def __init__(self):
        self.length, self.total_reward, self.hist_data = 0, 0.0, {}

    def add(self, reward, info):
        self.length += 1
        self.total_reward += reward
        self.last_info = info


class MonitorInfoCallback:
    def on_episode_step(self, episode):
        for key, value in episode.last_info.items():
            episode.hist_data.setdefault(key, []).append(value)


def make_policy():
    return torch.nn.Sequential(
        torch.nn.Linear(2 * JOINTS, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1), torch.nn.Tanh()
    )


def rollout_worker(connection, seed):
    environment, episode, callback = ChainEnv(seed), Episode(), MonitorInfoCallback()
    policy, observation = make_policy(), environment.reset()
    while (weights := connection.recv()) is not None:
        policy.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
        batch = {"observations": [], "actions": [], "rewards": []}
        for _ in range(FRAGMENT):
            with torch.inference_mode():
                mean = float(policy(torch.from_numpy(observation).float()))
            action = mean + float(environment.generator.normal(0, 0.5))
            batch["observations"].append(observation)
            observation, reward, info = environment.step(action)
            batch["actions"].append(action)
            batch["rewards"].append(reward)
            episode.add(reward, info)
            callback.on_episode_step(episode)
        arrays = {name: np.asarray(values, dtype=np.float32) for name, values in batch.items()}
        connection.send((arrays, episode.length, episode.total_reward))


def main():
    context = multiprocessing.get_context("fork")
    connections, workers = [], []
    for seed in (11, 12):
        ours, theirs = context.Pipe()
        worker = context.Process(target=rollout_worker, args=(theirs, seed))
        worker.start()
        connections.append(ours)
        workers.append(worker)
    policy = make_policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    started, iteration = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        weights = {name: value.numpy().copy() for name, value in policy.state_dict().items()}
        for connection in connections:
            connection.send(weights)
        for connection in connections:
            batch, length, total = connection.recv()
            observations = torch.from_numpy(batch["observations"])
            actions, rewards = torch.from_numpy(batch["actions"]), torch.from_numpy(batch["rewards"])
            advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
            loss = ((policy(observations)[:, 0] - actions) ** 2 * advantages).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        iteration += 1
        if iteration % 20 == 0:
            print(f"iteration {iteration}: episode of {length} steps, reward {total / length:.3f}", flush=True)
    for connection, worker in zip(connections, workers):
        connection.send(None)
        worker.join()


if __name__ == "__main__":
    main()
