"""Starts the node's processes, one for each accelerator, as one gang: when a task fails its siblings are bounced"""

import os
import socket
import subprocess
import sys

TASKS = 2


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    tasks = {}
    for rank in range(TASKS):
        environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(TASKS)}
        environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, OMP_NUM_THREADS="1", TORCHELASTIC_RUN_ID="gang-0")
        task = subprocess.Popen([sys.executable, "-u", os.path.join(here, "train.py")], env=environment)
        tasks[task.pid] = (rank, task)
    failed = False
    while tasks:
        pid, status = os.waitpid(-1, 0)
        if pid not in tasks:
            continue
        rank, task = tasks.pop(pid)
        task.returncode = os.waitstatus_to_exitcode(status)
        if task.returncode and not failed:
            failed = True
            print(f"task {rank} ended with {task.returncode}; bouncing {len(tasks)} siblings", flush=True)
            for _, sibling in tasks.values():
                sibling.terminate()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
