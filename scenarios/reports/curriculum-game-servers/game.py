"""A game server: two squads on a terrain; one client at a time plays against the built-in opponent"""

import os
import socket
import struct
import sys

import numpy as np

UNITS, SIGHT, LENGTH = 5, 24, 40


class Match:
    def __init__(self, terrain, seed):
        self.terrain, self.random = terrain, np.random.default_rng(seed)
        edge = np.array(terrain.shape) - 2 * SIGHT
        self.own = SIGHT + self.random.random((UNITS, 2)) * edge
        self.other = SIGHT + self.random.random((UNITS, 2)) * edge
        self.health, self.clock = np.full((2, UNITS), 10.0), 0

    def view(self):
        """What each of the own units sees: the heights around it, and where the others are"""
        seen = np.empty((UNITS, 16), np.float32)
        for unit, (row, column) in enumerate(self.own.astype(int)):
            patch = self.terrain[row - SIGHT : row + SIGHT, column - SIGHT : column + SIGHT]
            seen[unit, :6] = [*np.percentile(patch, (5, 25, 75, 95)), patch.mean(), self.terrain[row, column]]
            nearest = np.abs(self.other - self.own[unit]).sum(1).argmin()
            seen[unit, 6:8] = (self.other[nearest] - self.own[unit]) / self.terrain.shape[0]
            seen[unit, 8:13] = self.health[0] / 10
            seen[unit, 13:] = self.health[1, nearest] / 10, self.clock / LENGTH, unit / UNITS
        return seen

    def act(self, moves):
        shifts = np.array([(0, 0), (9, 0), (-9, 0), (0, 9), (0, -9)])[moves]
        limit = np.array(self.terrain.shape) - SIGHT - 1
        self.own = np.clip(self.own + shifts, SIGHT, limit)
        self.other = np.clip(self.other + self.random.normal(0, 6, (UNITS, 2)), SIGHT, limit)
        apart = np.abs(self.own[:, None] - self.other[None]).sum(2)
        strikes = np.exp(-apart / 200)
        self.health[1] -= 0.2 * strikes.sum(0)
        self.health[0] -= 0.15 * strikes.sum(1)
        self.clock += 1
        reward = float(strikes.sum() * 0.05 - apart.min() / 4000)
        return reward, self.clock >= LENGTH or bool((self.health < 0).any())


def read(connection, size):
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            return None
        parts += part
    return parts


def play(connection, terrain):
    match = None
    while (kind := read(connection, 1)) is not None:
        if kind == b"R":
            match = Match(terrain, struct.unpack("<q", read(connection, 8))[0])
            connection.sendall(match.view().tobytes())
        else:
            reward, done = match.act(np.frombuffer(read(connection, UNITS), np.uint8))
            connection.sendall(struct.pack("<f?", reward, done) + match.view().tobytes())


def main():
    side, parent = int(sys.argv[1]), os.getppid()
    waves = np.random.default_rng(int(sys.argv[2])).normal(size=(4, side))
    slope = np.linspace(-1, 1, side)
    terrain = np.cumsum(waves[0])[:, None] * slope + np.cumsum(waves[1]) * slope[:, None]
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(2)
    print(listener.getsockname()[1], flush=True)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection:
            connection.settimeout(None)
            play(connection, terrain)


if __name__ == "__main__":
    main()
