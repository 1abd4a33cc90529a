"""The environment of the squad: it launches the game, and plays over a socket; and a curriculum of such environments"""

import atexit
import os
import socket
import struct
import subprocess
import sys

import numpy as np

UNITS, FEATURES, MOVES = 5, 16, 5
GAME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "game.py")


class SquadEnv:
    def __init__(self, side, seed):
        self.game = subprocess.Popen(
            [sys.executable, GAME, str(side), str(seed)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        atexit.register(self.game.terminate)
        with self.game.stdout as output:
            port = int(output.readline())
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.matches = 0

    def _read(self, size):
        data = b""
        while len(data) < size:
            data += self.connection.recv(size - len(data))
        return data

    def _view(self):
        return np.frombuffer(self._read(4 * UNITS * FEATURES), np.float32).reshape(UNITS, FEATURES).copy()

    def reset(self):
        self.matches += 1
        self.connection.sendall(b"R" + struct.pack("<q", self.matches))
        return self._view()

    def step(self, moves):
        self.connection.sendall(b"S" + bytes(moves))
        reward, done = struct.unpack("<f?", self._read(5))
        return self._view(), reward, done

    def close(self):
        self.connection.close()
        self.game.terminate()
        self.game.wait()


class EnvCurriculum:
    """Plays some episodes on each map before it goes on to the next"""

    def __init__(self, makers, episodes):
        self.makers, self.episodes = makers, episodes
        self.stage, self.played = -1, 0
        self.env = self._start_next()

    def _start_next(self):
        self.stage, self.played = self.stage + 1, 0
        return self.makers[self.stage % len(self.makers)](self.stage)

    def reset(self):
        if self.played >= self.episodes:
            self.env = self._start_next()
        self.played += 1
        return self.env.reset()

    def step(self, moves):
        return self.env.step(moves)

    def close(self):
        self.env.close()
