"""Start a rank for each device of the node, and pass on the first failure"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main(world_size=2):
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        ranks = []
        for rank in range(world_size):
            environment = {
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(world_size),
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
                "INIT_FILE": os.path.join(folder, "ddp_init"),
                "DATA": folder,
            }
            command = [sys.executable, os.path.join(HERE, "train.py"), "--data_type", "shard"]
            ranks.append(subprocess.Popen(command, env=environment))
        statuses = [rank.wait() for rank in ranks]
    print(f"ranks ended with {statuses}", flush=True)
    return 1 if any(statuses) else 0


if __name__ == "__main__":
    sys.exit(main())
