"""The orchestrator: asks the inference server for rollouts, and trains on them with some of earlier steps"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn

from buffer import Buffer

torch.set_num_threads(1)
SECONDS, STEP_S = 38.0, 0.36
PROBLEMS, GROUPS, PER_PROBLEM, REPLAYED = 400, 40, 4, 16
VOCAB = 2048


class Value(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.EmbeddingBag(VOCAB, 64)
        self.out = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, ids):
        return self.out(self.tokens(ids)).squeeze(1)


def train(model, optimizer, rollouts, until):
    ids = torch.tensor([rollout["completion_ids"] for rollout in rollouts])
    rewards = torch.tensor([rollout["reward"] for rollout in rollouts])
    while True:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(ids), rewards)
        loss.backward()
        optimizer.step()
        if time.monotonic() >= until:
            return loss.item()


def generate(stream, problems):
    stream.write(json.dumps(problems) + "\n")
    stream.flush()
    rollouts = []
    while (line := stream.readline()) != "\n":
        if not line:
            raise ConnectionError("the inference server has left")
        rollouts.append(json.loads(line))
    return rollouts


def main():
    torch.manual_seed(0)
    buffer = Buffer(range(PROBLEMS))
    model = Value()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inference.py")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = subprocess.Popen([sys.executable, script, str(listener.getsockname()[1])])
        connection = listener.accept()[0]
    stream, begin, step = connection.makefile("rw"), time.monotonic(), 0
    while time.monotonic() - begin < SECONDS:
        until = time.monotonic() + STEP_S
        problems = [problem for problem in buffer.sample_problems(GROUPS) for _ in range(PER_PROBLEM)]
        rollouts = generate(stream, problems)
        replayed = buffer.replay(REPLAYED)
        buffer.update(rollouts)
        loss = train(model, optimizer, rollouts + replayed, until)
        step += 1
        if step % 10 == 0:
            reward = sum(rollout["reward"] for rollout in rollouts) / len(rollouts)
            print(f"step {step}: loss {loss:.4f}, reward {reward:.3f}", flush=True)
    stream.close()
    connection.close()
    server.wait()
    with tempfile.TemporaryDirectory() as folder:
        buffer.save(os.path.join(folder, "rollouts.jsonl"))


if __name__ == "__main__":
    main()
