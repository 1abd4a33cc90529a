"""Grandchildren that end in known ways: `endings.py MODE TRUTH`, the truth as JSON lines.

killed    200 grandchildren, SIGKILLed and reaped at once by their parent
zombies   the same, reaped only 3 s later
orphans   the same, after their parent has ended
mixed     60 that exit with codes 0 to 6, or die of SIGTERM, SIGKILL, SIGSEGV, by turns
"""

import json
import os
import signal
import sys
import time

MODE, TRUTH = sys.argv[1:]
COUNT = 60 if MODE == "mixed" else 200
SIGNALS = [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV]


def start_of(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def told(pid, start, status):
    how = {"signaled": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"exited": os.WEXITSTATUS(status)}
    return json.dumps({"pid": pid, "start": start, "ending": how}) + "\n"


def grandchild(index):
    if MODE != "mixed":
        while True:
            signal.pause()
    time.sleep(4)
    if index % 2:
        os._exit(index // 2 % 7)
    os.kill(os.getpid(), SIGNALS[index // 2 % 3])


def begin():
    pids = []
    for index in range(COUNT):
        pid = os.fork()
        if pid == 0:
            grandchild(index)
        pids.append((pid, start_of(pid)))
    return pids


def middle():
    pids = begin()
    with open(TRUTH, "a") as truth:
        if MODE == "orphans":
            truth.writelines(json.dumps({"pid": p, "start": s, "ending": {"signaled": 9}}) + "\n" for p, s in pids)
            return
        time.sleep(4)
        if MODE == "zombies":
            for pid, _ in pids:
                os.kill(pid, signal.SIGKILL)
            time.sleep(3)
        for pid, start in pids:
            if MODE == "killed":
                os.kill(pid, signal.SIGKILL)
            truth.write(told(pid, start, os.waitpid(pid, 0)[1]))


child = os.fork()
if child == 0:
    middle()
    os._exit(0)
_, status = os.waitpid(child, 0)
if MODE == "orphans":
    time.sleep(4)
    for line in open(TRUTH):
        os.kill(json.loads(line)["pid"], signal.SIGKILL)
time.sleep(2)
sys.exit(os.waitstatus_to_exitcode(status))
