"""Trains a small network, and prints the gradients of each step in full"""

import sys
import time

import torch

torch.set_num_threads(1)
RUN_S, STEP_S = 30.0, 0.2
WIDTH = 480


def train_for(model, optimizer, generator, seconds):
    until, loss = time.monotonic() + seconds, None
    while time.monotonic() < until:
        inputs = torch.randn(64, WIDTH, generator=generator)
        loss = torch.nn.functional.mse_loss(model(inputs), inputs.roll(1, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def print_gradients(model):
    row = " ".join(["%.8f"] * WIDTH) + "\n"
    for name, parameter in model.named_parameters():
        values = parameter.grad.reshape(-1, WIDTH).tolist()
        sys.stdout.write(f"grad {name}\n" + "".join([row % tuple(line) for line in values]))


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    end, step = time.monotonic() + RUN_S, 0
    while time.monotonic() < end:
        loss = train_for(model, optimizer, generator, STEP_S)
        print_gradients(model)
        step += 1
        print(f"step {step}: loss {loss:.5f}", flush=True)


if __name__ == "__main__":
    main()
