"""Trains the policy next to the engine: sleep, rollout, training, update of the weights; first only the critic"""

import os
import sys
import time
from multiprocessing.connection import Client

import torch
from layout import BUCKET_ROWS, HALF, LAYERS, WIDTH, initial_half

torch.set_num_threads(1)
ROUNDS, CRITIC_WARMUP, ROLLOUT_S, TRAIN_S = 9, 6, 1.7, 0.9


class Actor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ParameterList([torch.empty(2 * HALF, WIDTH) for _ in range(LAYERS)])
        for number, layer in enumerate(self.layers):
            for rank in range(2):
                layer.data[rank * HALF : (rank + 1) * HALF] = torch.from_numpy(initial_half(number, rank))

    def forward(self, hidden):
        for layer in self.layers:
            halves = torch.tanh(hidden @ layer.T).view(len(hidden), 2, WIDTH)
            hidden = torch.nn.functional.normalize(hidden + halves.sum(1))
        return hidden


class Trainer:
    def __init__(self):
        self.actor, self.critic = Actor(), torch.nn.Linear(WIDTH, 1)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-6, foreach=False)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def state(self):
        """All tensors that are on the device between two training steps"""
        yield from (parameter.data for parameter in self.actor.parameters())
        for values in self.actor_optimizer.state.values():
            yield values["exp_avg"]
            yield values["exp_avg_sq"]

    def sleep(self):
        """Copies the state to the host; when all copies are complete, the device gets its memory back"""
        self.host = [tensor.clone() for tensor in self.state()]
        for tensor in self.state():
            tensor.untyped_storage().resize_(0)

    def wake_up(self):
        for tensor, host in zip(self.state(), self.host):
            tensor.untyped_storage().resize_(host.untyped_storage().nbytes())
            tensor.copy_(host)
        self.host = None

    def train(self, number):
        until, hidden = time.monotonic() + TRAIN_S, torch.randn(24, WIDTH)
        rewards = hidden[:, :8].mean(1)
        while time.monotonic() < until:
            with torch.set_grad_enabled(number > CRITIC_WARMUP):
                states = self.actor(hidden)
            loss = (self.critic(states)[:, 0] - rewards).square().mean()
            loss.backward()
            for optimizer in (self.actor_optimizer, self.critic_optimizer):
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        return loss.item()


class Engines:
    def __init__(self, addresses):
        self.ranks = [connected(address) for address in addresses]

    def ask(self, *request):
        for rank in self.ranks:
            rank.send(request)
        return [rank.recv() for rank in self.ranks]

    def update(self, actor):
        for number, layer in enumerate(actor.layers):
            for rank, connection in enumerate(self.ranks):
                half = layer.data[rank * HALF : (rank + 1) * HALF]
                for start in range(0, HALF, BUCKET_ROWS):
                    connection.send(("update", f"layers.{number}", start))
                    connection.send_bytes(half[start : start + BUCKET_ROWS].clone().numpy().tobytes())

    def stop(self):
        for rank in self.ranks:
            rank.send(("stop",))


def connected(address):
    until = time.monotonic() + 60
    while True:
        try:
            return Client(address, "AF_UNIX")
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > until:
                raise
            os.sched_yield()


def main():
    trainer, engines = Trainer(), Engines(sys.argv[1:])
    engines.ask("check", "snapshot")
    engines.ask("check", "reset")
    engines.update(trainer.actor)
    engines.ask("check", "compare")
    print("the weights are equal after an update", flush=True)
    for number in range(1, ROUNDS + 1):
        trainer.sleep()
        steps = engines.ask("generate", ROLLOUT_S)
        trainer.wake_up()
        loss = trainer.train(number)
        engines.update(trainer.actor)
        print(f"round {number}: {sum(steps)} steps of rollout, loss {loss:.4f}", flush=True)
    engines.stop()


if __name__ == "__main__":
    main()
