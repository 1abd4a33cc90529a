"""Plays with a small network, sends each rollout to the store, and learns from rollouts of the store"""

import socket
import struct
import sys
import threading
import time

import torch

torch.set_num_threads(1)
SECONDS, ROLLOUT_S = 31.0, 0.035
SLOTS, FRAMES, SIDE = 1300, 64, 84
HEADER = struct.Struct("!cII")


class Value(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 8, stride=4), torch.nn.ReLU(),
            torch.nn.Conv2d(8, 16, 4, stride=2), torch.nn.ReLU(),
            torch.nn.Flatten(), torch.nn.Linear(16 * 9 * 9, 1),
        )

    def forward(self, frames):
        return self.layers(frames.unsqueeze(1).float() / 255).squeeze(1)


def connect(path):
    waiting = threading.Event()
    for _ in range(600):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            waiting.wait(0.1)
    sys.exit("the store does not answer")


def receive(connection, view):
    while len(view):
        count = connection.recv_into(view)
        if not count:
            sys.exit("the store has gone")
        view = view[count:]


def play(model, generator):
    """A rollout of a ball that is pushed to where the value is higher"""
    frames = torch.randint(0, 12, (FRAMES, SIDE, SIDE), dtype=torch.uint8, generator=generator)
    with torch.no_grad():
        values = model(frames).tolist()
    row, column = SIDE // 2, SIDE // 2
    for step, value in enumerate(values):
        row = (row + (2 if value > 0 else 1)) % (SIDE - 8)
        column = (column + 3) % (SIDE - 8)
        frames[step, row:row + 8, column:column + 8] = 220
    return frames


def learn(model, optimizer, frames):
    target = torch.linspace(-1, 1, FRAMES)
    loss = torch.nn.functional.mse_loss(model(frames), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main(path):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Value()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sample = bytearray(FRAMES * SIDE * SIDE)
    batch = torch.frombuffer(sample, dtype=torch.uint8).view(FRAMES, SIDE, SIDE)
    with connect(path) as connection:
        started, number = time.monotonic(), 0
        while time.monotonic() - started < SECONDS:
            until = time.monotonic() + ROLLOUT_S
            frames = play(model, generator)
            connection.sendall(HEADER.pack(b"S", number % SLOTS, frames.numel()))
            connection.sendall(frames.view(-1).numpy())
            chosen = int(torch.randint(0, SLOTS, (1,), generator=generator))
            connection.sendall(HEADER.pack(b"G", chosen, 0))
            receive(connection, memoryview(sample))
            loss = learn(model, optimizer, batch)
            while time.monotonic() < until:
                loss = learn(model, optimizer, batch)
            number += 1
            if number % 100 == 0:
                print(f"{number} rollouts, loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
