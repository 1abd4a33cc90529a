"""Starts the ranks of this node, and ends all when one fails."""

import os
import signal
import subprocess
import sys
import tempfile

DEVICES = 2


def main():
    with tempfile.TemporaryDirectory() as data:
        ranks = []
        for device in range(DEVICES):
            environment = dict(
                os.environ,
                RANK=str(device),
                WORLD_SIZE=str(DEVICES),
                DS_LOCAL_RANK=str(device),
                OMP_NUM_THREADS="1",
                STREAM_FOLDER=data,
                STREAM_PREFIX=f"{os.getpid()}",
            )
            command = [sys.executable, "-u", *sys.argv[1:], f"--local_rank={device}"]
            ranks.append(subprocess.Popen(command, env=environment))
        status, running = 0, list(ranks)
        while running:
            pid, raw = os.wait()
            ended = [rank for rank in running if rank.pid == pid]
            running = [rank for rank in running if rank.pid != pid]
            for rank in ended:
                rank.returncode = os.waitstatus_to_exitcode(raw)
                print(f"[launch] process {rank.pid} exits with {rank.returncode}", flush=True)
                if rank.returncode and not status:
                    status = 1
                    for other in running:
                        other.send_signal(signal.SIGTERM)
        return status


if __name__ == "__main__":
    sys.exit(main())
