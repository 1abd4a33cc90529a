"""Start the server of this node's partition and its trainers, and pass on whether they were done"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TRAINERS = 3


def start(script, folder, rank=0, stdout=None):
    environment = {
        **os.environ,
        "PART_FOLDER": folder,
        "RANK": str(rank),
        "WORLD_SIZE": str(TRAINERS),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    command = [sys.executable, os.path.join(HERE, script)]
    return subprocess.Popen(command, env=environment, stdout=stdout, text=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = start("server.py", folder, stdout=subprocess.PIPE)
        print(server.stdout.readline().strip(), flush=True)
        trainers = [start("train.py", folder, rank) for rank in range(TRAINERS)]
        statuses = [trainer.wait() for trainer in trainers]
        server.terminate()
        server.wait()
    print(f"trainers ended with {statuses}", flush=True)
    return 1 if any(statuses) else 0


if __name__ == "__main__":
    sys.exit(main())
