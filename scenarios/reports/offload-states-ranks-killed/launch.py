"""Start the ranks of this node and report how each of them exits"""

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
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world_size),
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
                "INIT_FILE": os.path.join(folder, "init"),
            }
            command = [sys.executable, "-u", os.path.join(HERE, "finetune.py"), f"--local_rank={rank}"]
            ranks.append(subprocess.Popen(command, env=environment))
        failed = False
        for rank in ranks:
            status = rank.wait()
            failed = failed or status != 0
            print(f"[launch.py] [{rank.pid}] exits with return code = {status}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
