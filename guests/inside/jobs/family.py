"""Children made in every way that hides them from a naive look: `family.py TRUTH`.

Writes pid, start and kind of each as JSON lines: fork, spawn, forkserver, fork from a second thread, double fork
+ setsid, a shell pipeline, a child that outlives its parent. All of them are alive for 10 s after the last one
began: the longest pause between two ticks of a watcher whose budget is spent.
"""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time

TRUTH = sys.argv[1] if len(sys.argv) > 1 else None
ALIVE = 14.0


def start_of(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def note(kind, pid=None):
    pid = pid or os.getpid()
    line = json.dumps({"kind": kind, "pid": pid, "start": start_of(pid)}) + "\n"
    descriptor = os.open(TRUTH, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def live(kind, truth, seconds=ALIVE):
    global TRUTH
    TRUTH = truth
    note(kind)
    time.sleep(seconds)


def forked(kind, body=None):
    pid = os.fork()
    if pid == 0:
        (body or (lambda: live(kind, TRUTH)))()
        os._exit(0)
    return pid


def double_forked():
    os.setsid()
    forked("double fork + setsid")


def parent_that_ends():
    forked("outlives its parent")
    time.sleep(0.5)


def children_of(pid):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                        found.append(int(name))
            except OSError:
                pass
    return found


def main():
    note("main")
    forked("fork")
    for method in ("spawn", "forkserver"):
        multiprocessing.get_context(method).Process(target=live, args=(method, TRUTH)).start()
    thread = threading.Thread(target=lambda: (forked("fork from a thread"), time.sleep(ALIVE)))
    thread.start()
    os.waitpid(forked("", double_forked), 0)
    os.waitpid(forked("", parent_that_ends), 0)
    shell = subprocess.Popen(["sh", "-c", "sleep 12 | sleep 12; true"])
    time.sleep(0.5)
    note("shell", shell.pid)
    for pid in children_of(shell.pid):
        note("shell pipeline", pid)
    thread.join()
    shell.wait()


if __name__ == "__main__":
    main()
