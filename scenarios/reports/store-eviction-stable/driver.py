"""The driver: asks evaluators for batches of samples, gets them from the object store, and trains the policy"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import wait

import torch
from evaluator import FEATURES, policy_network, run_evaluator
from store import PlasmaClient

SECONDS, CAPACITY, EVALUATORS, SYNC_EVERY = 33.0, 240_000_000, 2, 10


class Learner:
    def __init__(self):
        torch.manual_seed(0)
        self.policy = policy_network()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-3)

    def train(self, samples):
        """One step of policy gradients on a batch of observations, actions and rewards"""
        observations, actions = samples[:, :FEATURES], samples[:, FEATURES].long()
        rewards = samples[:, FEATURES + 1]
        logp = torch.log_softmax(self.policy(observations), -1).gather(1, actions[:, None])[:, 0]
        loss = -(logp * (rewards - rewards.mean())).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return rewards.mean().item()

    def weights(self):
        return {name: value.numpy().copy() for name, value in self.policy.state_dict().items()}


def main():
    torch.set_num_threads(1)
    context, learner = multiprocessing.get_context("spawn"), Learner()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plasma_store")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "store.py")
        command = [sys.executable, script, "--socket", path, "--memory", str(CAPACITY)]
        store = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        print(store.stdout.readline().strip(), flush=True)
        client, evaluators = PlasmaClient(path), {}
        for number in range(EVALUATORS):
            ours, theirs = context.Pipe()
            arguments, name = (theirs, path, number), f"PolicyEvaluator-{number}"
            process = context.Process(target=run_evaluator, args=arguments, name=name)
            process.start()
            theirs.close()
            evaluators[ours] = process
        for pipe in evaluators:
            pipe.send(learner.weights())
        end, batches, reward = time.monotonic() + SECONDS, 0, 0.0
        while time.monotonic() < end:
            for pipe in wait(list(evaluators)):
                samples = torch.frombuffer(client.get(pipe.recv()), dtype=torch.float32).view(-1, FEATURES + 2)
                pipe.send(learner.weights() if batches % SYNC_EVERY == 0 else {})
                reward += 0.05 * (learner.train(samples) - reward)
                batches += 1
                if batches % 50 == 0:
                    print(f"{batches} batches, reward {reward:.4f}", flush=True)
        for pipe, process in evaluators.items():
            pipe.recv()
            pipe.send(None)
            process.join()
        client.close()
        store.terminate()
        print(store.communicate()[0].count("evicting"), "evictions", flush=True)


if __name__ == "__main__":
    main()
