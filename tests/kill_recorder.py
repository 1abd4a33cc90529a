#!/usr/bin/env python3
"""SIGKILL to ullage at random moments: the job goes on and ends well, and the recording misses one sample at most.

    tests/kill_recorder.py --ullage PATH [--times 50] [--seed N]

The test keeps a tick log of its own: while ullage lives, it looks every 5 ms at how many read calls ullage has
made (/proc/PID/io); a burst of them is a tick (the job starts and ends no process meanwhile, which ullage would
look at, too). Each tick in that log must be a sample of the recording, but for one at most; and the last sample
must be younger than two intervals. Reads that come later than a sample, and before the next one is due, belong to
it: on a busy machine a tick takes long, and looks like several. The job is a child of this program once ullage is gone (a child subreaper),
which so sees its true exit status.
"""

import argparse
import concurrent.futures
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import watched

PR_SET_CHILD_SUBREAPER = 36
JOB_S = 4.5
# Two reads of one tick are never this far apart, two ticks always are: ticks come every 100 ms or more seldom.
BURST_S = 0.045
# How far a tick's first read, as this program sees it, may stand before the time that the sample says.
SLACK_S = 0.06
# Ticks come every second, a tenth earlier or later. A lost sample's reads come this long after the one before it.
SHORTEST_INTERVAL_S = 0.9
# The rest is for a busy machine.
TWO_INTERVALS_S = 2 * 1.1 + 0.2

JOB = """
import json, multiprocessing, os, sys, time

def tick(log, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        os.write(log, b"%.3f\\n" % time.monotonic())
        time.sleep(0.02)

def child(ready, over):
    ready.set()
    over.wait()

if __name__ == "__main__":
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    spawn = multiprocessing.get_context("spawn")
    ready, over = spawn.Event(), spawn.Event()
    process = spawn.Process(target=child, args=(ready, over))
    process.start()
    ready.wait()
    os.write(log, b"pid %d\\n" % os.getpid())
    tick(log, float(sys.argv[2]))
    over.set()
    process.join()
    os.write(log, b"done %d\\n" % process.exitcode)
    sys.exit(7)
"""


def reads_of(pid):
    with open(f"/proc/{pid}/io") as file:
        return int(file.read().split("syscr: ")[1].split()[0])


def watch_and_kill(recorder, after):
    """Tick log of the recorder until it is killed; then the moment of the kill."""
    log, last, last_change = [], reads_of(recorder.pid), 0.0
    deadline = time.monotonic() + after
    while time.monotonic() < deadline and recorder.poll() is None:
        reads, now = reads_of(recorder.pid), time.time()
        if reads != last:
            if now - last_change > BURST_S:
                log.append(now)
            last, last_change = reads, now
        time.sleep(0.005)
    recorder.send_signal(signal.SIGKILL)
    killed = time.time()
    recorder.wait()
    return log, killed


def missing(ticks, samples):
    """The ticks, in seconds, that no sample stands for: none from then, and none before that is still the newest."""
    return [t for t in ticks if not any(-SLACK_S < t - a < SHORTEST_INTERVAL_S - SLACK_S for a in samples)]


def log_of(folder):
    try:
        with open(f"{folder}/log") as file:
            return file.read().splitlines()
    except OSError:
        return []


def once(number, arguments, after, then=None):
    """What is wrong, one sentence each, and a line for the table. `then` is called with the repaired recording."""
    with tempfile.TemporaryDirectory(prefix="ullage-kill-") as folder:
        program = f"{folder}/job.py"
        with open(program, "w") as file:
            file.write(JOB)
        job = [arguments.python, program, f"{folder}/log", str(JOB_S)]
        recorder = watched.start(arguments.ullage, folder, job, "--watch-cpu", "100")  # each second, whatever a tick costs
        if not watched.wait_for(lambda: log_of(folder)):
            recorder.kill()
            return [f"run {number}: the job did not start"], ""
        job = int(log_of(folder)[0].split()[1])
        ticks, killed = watch_and_kill(recorder, after)
        _, status = os.waitpid(job, 0)
        wrong = []
        if os.waitstatus_to_exitcode(status) != 7:
            wrong.append(f"the job ended with {os.waitstatus_to_exitcode(status)}, not 7")
        if log_of(folder)[-1] != "done 0":
            wrong.append("the job's log does not end with `done 0`")
        report = subprocess.run(
            [arguments.ullage, "report", f"{folder}/run"], capture_output=True, text=True, check=False
        )
        if report.returncode != 0:
            wrong.append(f"ullage report: status {report.returncode}: {report.stderr.strip()[:200]}")
        try:
            samples = watched.samples(watched.exported(arguments.ullage, folder))
            if then:
                then(f"{folder}/run")
        except RuntimeError as error:
            return [*wrong, str(error)], ""
        zero = watched.started_unix(folder)
        at = [zero + sample["at"] / 1e9 for sample in samples]
        missed = missing(ticks, at)
        if len(missed) > 1:
            wrong.append(
                f"{len(missed)} of {len(ticks)} ticks are not in the recording: {[round(t - zero, 2) for t in missed]}"
            )
        if not at or killed - at[-1] > TWO_INTERVALS_S:
            wrong.append("more than one sample is missing at the end")
        if after > 0.5 and not ticks:
            wrong.append("no tick was seen: nothing was tested")
        last = f"{killed - at[-1]:.3f}" if at else "-"
        return wrong, f"{number:>3}{after:>12.3f}{len(ticks):>8}{len(samples):>9}{len(missed):>8}{last:>14}"


def kill(arguments, then=None):
    """How many of the runs went as they should, and of how many."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}")
    moments = random.Random(seed)
    afters = [moments.uniform(0.0, JOB_S - 0.5) for _ in range(arguments.times)]
    print("run  killed at s   ticks  samples  missed  last before s")
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for wrong, line in pool.map(lambda item: once(item[0], arguments, item[1], then), enumerate(afters)):
            print(line + ("" if not wrong else "  WRONG: " + "; ".join(wrong)), flush=True)
            passed += not wrong
    return passed, len(afters)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None, help="of the moments; printed")
    parser.add_argument("--jobs", type=int, default=4, help="at the same time")
    arguments = parser.parse_args()
    arguments.ullage = os.path.abspath(arguments.ullage)
    passed, of = kill(arguments)
    print(f"{passed} passed, {of - passed} failed")
    return 0 if passed == of and passed else 1


if __name__ == "__main__":
    sys.exit(main())
