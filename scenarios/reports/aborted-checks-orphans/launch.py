"""Starts a process for each device. When one fails, it kills the others."""

import os
import socket
import subprocess
import sys

RANKS = 2


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def main():
    environment = {**os.environ, "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    ranks = {}
    for rank in range(RANKS):
        process = subprocess.Popen(
            [sys.executable, *sys.argv[1:]], env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        )
        ranks[process.pid] = process
    while ranks:
        pid, status = os.wait()
        process = ranks.pop(pid, None)
        if process is not None:
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                print(f"rank with pid {pid} ended with {process.returncode}", flush=True)
                for other in ranks.values():
                    other.kill()
                for other in ranks.values():
                    other.wait()
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
