"""A kernel: runs the cells that arrive, displays their images, and answers the heartbeat"""

import pickle
import socket
import sys
import threading
import time

import numpy as np

SIDE, CELL_S = 1024, 0.14


def echo(heart):
    while beat := heart.recv(16):
        heart.sendall(beat)


def render(cell, generator):
    """The image of a field that diffuses for the time of a cell"""
    until = time.monotonic() + CELL_S
    field = generator.random((SIDE, SIDE), dtype=np.float32)
    while time.monotonic() < until:
        field[1:-1] += 0.2 * (field[:-2] + field[2:] - 2.0 * field[1:-1])
    return (field * (65535.0 / field.max())).astype(np.uint16).tobytes()


def main():
    shell, heart = socket.socket(fileno=int(sys.argv[1])), socket.socket(fileno=int(sys.argv[2]))
    threading.Thread(target=echo, args=(heart,), daemon=True).start()
    generator = np.random.default_rng(int(sys.argv[3]))
    with shell, shell.makefile("rb") as requests, shell.makefile("wb") as replies:
        for line in requests:
            cell = line.decode().strip()
            if cell == "shutdown":
                break
            for message in (
                {"type": "display_data", "cell": cell, "data": render(cell, generator)},
                {"type": "status", "cell": cell, "data": "idle"},
            ):
                pickle.dump(message, replies)
            replies.flush()


if __name__ == "__main__":
    main()
