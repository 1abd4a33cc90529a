"""Human-in-the-loop RL: a learner process pushes its policy's weights, and the actor takes them before each episode."""

import io
import time
from multiprocessing import Event, Pipe, Process, Queue
from queue import Empty

import numpy as np
import torch
from torch import nn

SECONDS = 22.0
PUSH_FREQUENCY = 0.12
EPISODE_STEPS = 4000


def make_policy():
    return nn.Sequential(nn.Linear(96, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 7))


def state_to_bytes(state_dict):
    buffer = io.BytesIO()
    torch.save(state_dict, buffer)
    return buffer.getvalue()


def bytes_to_state_dict(data):
    return torch.load(io.BytesIO(data), weights_only=True)


def start_learner(connection, shutdown_event):
    torch.set_num_threads(1)
    policy = make_policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    last_push = time.monotonic()
    while not shutdown_event.is_set():
        observation, action = torch.randn(48, 96), torch.randn(48, 7)
        loss = (policy(observation) - action).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if time.monotonic() - last_push > PUSH_FREQUENCY:
            connection.send_bytes(state_to_bytes(policy.state_dict()))
            last_push = time.monotonic()


def receive_policy(connection, parameters_queue, shutdown_event):
    """Runs beside the actor, so that a slow network never holds up an episode."""
    while not shutdown_event.is_set():
        if connection.poll(0.1):
            parameters_queue.put(connection.recv_bytes())
    parameters_queue.cancel_join_thread()


def get_item_from_queue(queue):
    try:
        return queue.get_nowait()
    except Empty:
        return None


class Environment:
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.basis = self.rng.normal(size=(96, 160)).astype(np.float32)

    def reset(self):
        self.state = np.zeros(160, np.float32)
        return self.basis @ self.state

    def step(self, action):
        self.state = np.tanh(0.9 * self.state + self.rng.normal(size=160).astype(np.float32))
        self.state[:7] += action
        image = np.outer(self.state, self.state)
        return self.basis @ self.state, float(-np.abs(image).mean())


@torch.no_grad()
def run_episode(policy, environment):
    observation, total = environment.reset(), 0.0
    for _ in range(EPISODE_STEPS):
        action = policy(torch.from_numpy(observation))
        observation, reward = environment.step(action.numpy())
        total += reward
    return total


def actor_cli():
    torch.set_num_threads(1)
    learner_end, actor_end = Pipe()
    parameters_queue, shutdown_event = Queue(), Event()
    processes = [
        Process(target=start_learner, args=(learner_end, shutdown_event)),
        Process(target=receive_policy, args=(actor_end, parameters_queue, shutdown_event)),
    ]
    for process in processes:
        process.start()
    policy, environment = make_policy(), Environment()
    end, episode = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        data = get_item_from_queue(parameters_queue)
        if data is not None:
            policy.load_state_dict(bytes_to_state_dict(data))
        total = run_episode(policy, environment)
        episode += 1
        if episode % 3 == 0:
            print(f"[ACTOR] episode {episode} reward {total:.2f}", flush=True)
    shutdown_event.set()
    processes[1].join()
    processes[0].terminate()
    processes[0].join()
    parameters_queue.close()


if __name__ == "__main__":
    actor_cli()
