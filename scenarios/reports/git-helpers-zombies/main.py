"""The first process of a container: starts its services, and syncs their repositories every now and then."""

import ctypes
import os
import subprocess
import sys
import threading

PR_SET_CHILD_SUBREAPER = 36
SYNCS = 600

# Stands for `git fetch`: its transport helper ends a little later than git itself.
GIT_FETCH = """
sleep 0.2 </dev/null >/dev/null 2>&1 &
exit 0
"""

# Stands for a service that lives as long as the container.
SERVICE = "import sys; sys.stdin.read()"


class ProcessHandler:
    def __init__(self):
        self.processes = {}

    def start(self, name, command):
        self.processes[name] = subprocess.Popen(command, stdin=subprocess.PIPE)

    def stop_all(self):
        for process in self.processes.values():
            process.stdin.close()
            process.wait()


def sync(repository):
    subprocess.run(["sh", "-c", GIT_FETCH, "git", "fetch", repository], check=True)


def main():
    # A container's first process gets the orphans by itself.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    handler = ProcessHandler()
    for name in ("postgres", "prowlarr", "profilarr"):
        handler.start(name, [sys.executable, "-c", SERVICE])
    pause = threading.Event()
    try:
        for number in range(SYNCS):
            sync(f"https://example.org/database-{number % 3}.git")
            if number % 20 == 0:
                print(f"sync {number}: done, first process {os.getpid()}", flush=True)
            pause.wait(0.1)
    finally:
        handler.stop_all()


if __name__ == "__main__":
    main()
