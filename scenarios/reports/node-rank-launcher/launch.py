"""Starts the ranks of a node, as the simple launchers of training frameworks do."""

import os
import socket
import subprocess
import sys

WORLD_SIZE = 2


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    environment.update(WORLD_SIZE=str(WORLD_SIZE), OMP_NUM_THREADS="1")
    environment.pop("NODE_RANK", None)
    command = [sys.executable, script, "--num_workers", "1"]
    ranks = []
    for rank in range(WORLD_SIZE):
        mine = {**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        ranks.append(subprocess.Popen(command, env=mine))
    while any(rank.poll() is None for rank in ranks):
        for rank in ranks:
            try:
                status = rank.wait(0.5)
            except subprocess.TimeoutExpired:
                continue
            if status:
                for other in ranks:
                    other.terminate()
                for other in ranks:
                    other.wait()
                raise subprocess.CalledProcessError(status, command)


if __name__ == "__main__":
    main()
