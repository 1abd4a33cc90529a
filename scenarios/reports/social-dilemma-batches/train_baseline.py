"""A policy for several agents in a grid world: evaluators collect episodes in processes, a learner trains on their batches"""

import collections
import multiprocessing
import time

import numpy as np
import torch

WORKERS, AGENTS, SIDE, ACTIONS = 2, 5, 24, 8
HORIZON, SAMPLE_STEPS = 100, 700
MINIBATCH, SGD_STEPS = 256, 12
RUN_S = 38


class HarvestEnv:
    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.world = self.generator.random((3, 64, 64), dtype=np.float32)

    def reset(self):
        self.time = 0
        self.places = self.generator.integers(0, 64 - SIDE, (AGENTS, 2))
        return self.observe()

    def observe(self):
        return {
            f"agent-{i}": self.world[:, y : y + SIDE, x : x + SIDE].copy() for i, (y, x) in enumerate(self.places.tolist())
        }

    def step(self, actions):
        moves = np.array([[a % 3 - 1, a // 3 - 1] for a in actions.values()])
        self.places = np.clip(self.places + moves, 0, 64 - SIDE - 1)
        self.time += 1
        observations = self.observe()
        rewards = {name: float(view[0, 12, 12] > 0.9) for name, view in observations.items()}
        return observations, rewards, self.time >= HORIZON


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, stride=2),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(8 * 11 * 11, 64),
            torch.nn.ReLU(),
        )
        self.logits, self.value = torch.nn.Linear(64, ACTIONS), torch.nn.Linear(64, 1)

    def forward(self, views):
        features = self.body(views)
        return self.logits(features), self.value(features)[:, 0]


class PolicyEvaluator:
    """Builds the episodes of each agent until a sample is complete"""

    def __init__(self, seed):
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.env, self.policy = HarvestEnv(seed), Policy()
        self.builders = collections.defaultdict(lambda: collections.defaultdict(list))
        self.observations = self.env.reset()

    @torch.inference_mode()
    def sample(self):
        for _ in range(SAMPLE_STEPS):
            views = torch.from_numpy(np.stack(list(self.observations.values())))
            logits, _ = self.policy(views)
            actions = dict(zip(self.observations, torch.distributions.Categorical(logits=logits).sample().tolist()))
            following, rewards, done = self.env.step(actions)
            for name, view in self.observations.items():
                builder = self.builders[name]
                builder["obs"].append(view)
                builder["actions"].append(actions[name])
                builder["rewards"].append(rewards[name])
            self.observations = self.env.reset() if done else following
        batch = {
            key: np.concatenate([np.asarray(builder[key]) for builder in self.builders.values()])
            for key in ("obs", "actions", "rewards")
        }
        self.builders.clear()
        return batch


def evaluator_main(connection, seed):
    evaluator = PolicyEvaluator(seed)
    while (weights := connection.recv()) is not None:
        evaluator.policy.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
        connection.send(evaluator.sample())


def learn(policy, optimizer, batch, generator):
    returns = batch["rewards"].astype(np.float32)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    for _ in range(SGD_STEPS):
        rows = generator.integers(0, len(returns), MINIBATCH)
        logits, values = policy(torch.from_numpy(batch["obs"][rows]))
        target = torch.from_numpy(returns[rows])
        chosen = logits.log_softmax(1).gather(1, torch.from_numpy(batch["actions"][rows])[:, None])[:, 0]
        loss = -(chosen * (target - values.detach())).mean() + 0.5 * (values - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    policy, generator = Policy(), np.random.default_rng(0)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    context = multiprocessing.get_context("spawn")
    connections, processes = [], []
    for seed in range(WORKERS):
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=evaluator_main, args=(theirs, seed + 1)))
        processes[-1].start()
        theirs.close()
        connections.append(ours)
    end, iteration = time.monotonic() + RUN_S, 0
    while time.monotonic() < end:
        weights = {name: value.numpy().copy() for name, value in policy.state_dict().items()}
        for connection in connections:
            connection.send(weights)
        parts = [connection.recv() for connection in connections]
        batch = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        loss = learn(policy, optimizer, batch, generator)
        iteration += 1
        print(f"iteration {iteration}: {len(batch['rewards'])} steps, reward {batch['rewards'].mean():.4f}, loss {loss:.3f}", flush=True)
    for connection, process in zip(connections, processes):
        connection.send(None)
        process.join()


if __name__ == "__main__":
    main()
