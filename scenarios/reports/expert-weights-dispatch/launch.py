"""Starts the ranks of a node, and ends them all when one of them fails"""

import os
import signal
import socket
import subprocess
import sys

RANKS = 2


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = {}
    for rank in range(RANKS):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "OMP_NUM_THREADS": "1"}
        environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        process = subprocess.Popen([sys.executable, os.path.join(here, "compress.py")], env=environment)
        ranks[process.pid] = rank, process
    failed = 0
    while ranks:
        pid, status = os.wait()
        if pid not in ranks:
            continue
        rank, process = ranks.pop(pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode and not failed:
            failed = 1
            print(f"rank {rank} failed with {process.returncode}, ending the others", file=sys.stderr, flush=True)
            for _, other in ranks.values():
                other.send_signal(signal.SIGTERM)
    return failed


if __name__ == "__main__":
    sys.exit(main())
