"""Starts a worker, watches its resident memory, and restarts it should it end without having been told to."""

import os
import subprocess
import sys
import tempfile

LIMIT = 512 << 20
ROWS = 1_000_000_000


def memory(pid):
    with open(f"/proc/{pid}/statm") as statm:
        virtual, resident, shared = (int(pages) * 4096 for pages in statm.read().split()[:3])
    return virtual, resident, shared


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "yellow_taxi.columns")
        with open(path, "wb") as table:
            table.truncate(5 * 8 * ROWS)
        here = os.path.dirname(os.path.abspath(__file__))
        worker = subprocess.Popen([sys.executable, os.path.join(here, "worker.py"), path, str(ROWS)])
        while True:
            try:
                worker.wait(1.5)
                break
            except subprocess.TimeoutExpired:
                virtual, resident, shared = memory(worker.pid)
            text = f"{virtual >> 20} MiB VMS, {resident >> 20} MiB RSS, {shared >> 20} MiB SHR"
            if resident > LIMIT:
                print("Worker is at its memory limit but has no data to store to disk:", text, flush=True)
            else:
                print(text, flush=True)
        return worker.returncode


if __name__ == "__main__":
    sys.exit(main())
