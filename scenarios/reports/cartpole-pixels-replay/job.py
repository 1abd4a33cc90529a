"""Learns to balance a pole from pictures"""

import random

import torch
from cartpole import SIDE, CartPole
from dqn import DQN


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    agent = DQN(CartPole(seed=2), memory_limit=2000)
    agent.init_model(SIDE)
    agent.play(steps=34_000, step_s=0.00065)


if __name__ == "__main__":
    main()
