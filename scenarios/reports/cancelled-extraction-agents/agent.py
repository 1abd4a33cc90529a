"""Keeps the ranks of one machine running"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def start(rank, world_size, slide, started):
    environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size)}
    process = subprocess.Popen([sys.executable, os.path.join(HERE, "encode_tiles.py"), slide], env=environment)
    note(process.pid, started)
    return process


def note(number, started):
    with open(started, "a") as file:
        file.write(f"{number}\n")


def main():
    world_size, slide, started = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    note(os.getpid(), started)
    ranks = [start(rank, world_size, slide, started) for rank in range(world_size)]
    while any(process.returncode != 0 for process in ranks):
        for rank, process in enumerate(ranks):
            try:
                if process.wait(timeout=0.5):
                    ranks[rank] = start(rank, world_size, slide, started)
            except subprocess.TimeoutExpired:
                pass


if __name__ == "__main__":
    main()
