#!/usr/bin/env python3
"""ullage stopped for a while, and the whole job killed at once.

1. SIGSTOP to ullage: the job goes on while it is stopped. Its speed meanwhile is printed, beside that before and after.
   The job counts rounds of fixed work and is a DataLoader's worth of chatter with the agent: it starts processes.
2. SIGKILL to every process of the job: ullage ends with a full verdict. How soon is printed.

    python tests/outage.py --ullage target/release/ullage [--rounds 600] [--kills 10]
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import watched

WORKER = """
import multiprocessing, os, sys, time

def child():
    sum(range(1000))

if __name__ == "__main__":
    log = open(sys.argv[1], "a", buffering=1)
    context = multiprocessing.get_context("fork")
    while True:
        started = time.monotonic()
        child_process = context.Process(target=child)
        child_process.start()
        sum(range(300000))
        child_process.join()
        log.write(f"{started} {time.monotonic() - started}\\n")
"""

TREE = """
import multiprocessing, sys, time

def rest():
    time.sleep(3600)

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=rest) for _ in range(8)]
    for one in children:
        one.start()
    with open(sys.argv[1], "w") as file:
        file.write(" ".join(str(one.pid) for one in children))
    children[0].join()
"""


def rounds(log, start, end):
    with open(log) as file:
        rows = [tuple(map(float, line.split())) for line in file if line.endswith("\n") and len(line.split()) == 2]
    return [took for at, took in rows if start <= at and at + took <= end]


def more_rounds(log, number):
    """Waits until the job has done so many more; the time."""
    size = os.path.getsize(log)
    with open(log) as file:
        file.seek(size)
        for _ in range(number):
            if not watched.wait_for(file.readline):
                raise RuntimeError("the job stands still")
    return time.monotonic()


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def stopped(ullage, folder, env, number):
    script, log = os.path.join(folder, "worker.py"), os.path.join(folder, "log")
    with open(script, "w") as file:
        file.write(WORKER)
    child = subprocess.Popen([ullage, "run", "-q", "--", sys.executable, script, log], env=env)
    watched.wait_for(lambda: os.path.exists(log) and os.path.getsize(log))
    marks = [time.monotonic(), more_rounds(log, number // 2)]
    os.kill(child.pid, signal.SIGSTOP)
    marks.append(more_rounds(log, number))
    still = state(child.pid)
    os.kill(child.pid, signal.SIGCONT)
    marks.append(more_rounds(log, number // 2))
    child.terminate()
    status = child.wait()
    beside = rounds(log, marks[0], marks[1]) + rounds(log, marks[2], marks[3])
    alone = rounds(log, marks[1], marks[2])
    ratio = statistics.median(alone) / statistics.median(beside)
    worst = max(alone)
    print(
        f"stopped: {len(alone)} rounds, median {1e3 * statistics.median(alone):.2f} ms, slowest {1e3 * worst:.0f} ms"
    )
    print(
        f"watched: {len(beside)} rounds, median {1e3 * statistics.median(beside):.2f} ms; ratio {ratio:.3f}"
    )
    return still == "T" and status == 143


def killed(ullage, folder, env, times):
    script = os.path.join(folder, "tree.py")
    with open(script, "w") as file:
        file.write(TREE)
    slowest, good = 0.0, True
    for number in range(times):
        pids, verdict = os.path.join(folder, f"pids{number}"), os.path.join(folder, f"verdict{number}")
        child = subprocess.Popen([ullage, "run", "-q", "--json", verdict, "--", sys.executable, script, pids], env=env)
        watched.wait_for(lambda: os.path.exists(pids) and os.path.getsize(pids))
        # The kill falls at another moment of the second between two samples each time.
        time.sleep(0.1 * number)
        with open(f"/proc/{child.pid}/task/{child.pid}/children") as file:
            main = int(file.read().split()[0])
        with open(pids) as file:
            victims = [main, *map(int, file.read().split())]
        at = time.monotonic()
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        status = child.wait()
        slowest = max(slowest, time.monotonic() - at)
        with open(verdict) as file:
            outcome = json.load(file)
        full = (
            outcome["outcome"]["kind"] == "signal"
            and outcome["outcome"]["by"] == "sender unknown"
            and not outcome["findings"]
        )
        good = good and full and status == 137
        if not full:
            print("verdict:", outcome["outcome"], [finding["cause"] for finding in outcome["findings"]])
    print(f"whole job killed {times} times: a verdict after {slowest:.2f} s at the latest")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--rounds", type=int, default=600, help="that the job does while ullage is stopped")
    parser.add_argument("--kills", type=int, default=10)
    args = parser.parse_args()
    ullage = os.path.abspath(args.ullage)
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, ULLAGE_HOME=os.path.join(folder, "home"))
        results = [killed(ullage, folder, env, args.kills), stopped(ullage, folder, env, args.rounds)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
