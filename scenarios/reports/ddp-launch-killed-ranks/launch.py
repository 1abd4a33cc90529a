"""Start a training script once for each rank, and wait for all."""

import argparse
import os
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nproc", type=int)
    parser.add_argument("--port")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=args.port, WORLD_SIZE=str(args.nproc))
    processes = []
    for rank in range(args.nproc):
        env.update(RANK=str(rank), LOCAL_RANK=str(rank))
        command = [sys.executable, "-u", args.script, f"--local_rank={rank}", *args.rest]
        processes.append(subprocess.Popen(command, env=env))
    for process in processes:
        process.wait()
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, process.args)


if __name__ == "__main__":
    main()
