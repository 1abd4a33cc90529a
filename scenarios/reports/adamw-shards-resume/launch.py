"""Runs the ranks of a node: first the training, then the training that goes on from its files"""

import os
import signal
import socket
import subprocess
import sys
import tempfile

RANKS = 2


def run_ranks(phase, folder):
    here = os.path.dirname(os.path.abspath(__file__))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks, failed = {}, False
    for rank in range(RANKS):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "OMP_NUM_THREADS": "1"}
        environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        command = [sys.executable, os.path.join(here, "train.py"), phase, folder]
        process = subprocess.Popen(command, env=environment)
        ranks[process.pid] = rank, process
    while ranks:
        pid, status = os.wait()
        if pid not in ranks:
            continue
        rank, process = ranks.pop(pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode and not failed:
            failed = True
            print(f"{phase}: rank {rank} ended with {process.returncode}", file=sys.stderr, flush=True)
            for _, other in ranks.values():
                other.send_signal(signal.SIGTERM)
    return not failed


def main():
    with tempfile.TemporaryDirectory(dir=".") as folder:
        return 0 if run_ranks("train", folder) and run_ranks("resume", folder) else 1


if __name__ == "__main__":
    sys.exit(main())
