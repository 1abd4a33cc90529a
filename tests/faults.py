#!/usr/bin/env python3
"""Signals, forks, collections, exceptions and kills at random moments of jobs in which the agent and the arena run.

Each job runs under `ullage run --fix`, one for each start method (`--fix=all,zygote` for the zygote), and draws its
events from a seed. A signal comes from a timer of the kernel at a random microsecond of a look of the agent's, a
collection, a message, a fork, a batch; its handler raises, and the program must catch that once. Forks fall beside
threads that send and wait, kills on the steps of the arena's protocol. Judged: hangs (the stacks are printed), lost
exceptions, wrong bytes, failures, and what is left behind: processes, blocks, files, names in /dev/shm, sockets.

    tests/faults.py --ullage PATH --python PYTHON [--events 10000] [--seed 1] [--methods fork,zygote] [--plain]

How many events fell on code of ours is told by the frame in which the kernel's signal arrived (faulthandler, which
writes at once), and by the frames of the other threads at a fork. What CPython itself loses (a handler that runs in
somebody's finalizer) is counted apart. With --plain the same jobs run without ullage: they have to be at no fault.
"""

import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import faults_job
import watched
from faults_signals import PATIENCE, SETTLE

METHODS = "fork,spawn,forkserver,zygote"
MARK = "ULLAGE_TEST_FAULTS"
ZEROS = ("hangs", "lost", "wrong", "failed", "left")


# --- from outside ---------------------------------------------------------------------------------------


def stacks(token):
    """Of every process of a job that hangs."""
    for pid in watched.marked(MARK, token):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            print(f"    process {pid}: {file.read().replace(bytes(1), b' ').decode(errors='replace')[:150]}")
        if shutil.which("gdb"):
            command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 14"]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            lines = [line for line in done.stdout.splitlines() if line.startswith(("#", "Thread"))]
            print("\n".join(f"        {line[:150]}" for line in lines[:90]))
        try:
            os.kill(pid, signal.SIGUSR1)  # Python's frames, where the job has asked for them
        except ProcessLookupError:
            pass


class Run:
    """One job, watched from outside."""

    def __init__(self, args, method, events, seed, dies=False):
        self.args, self.method, self.dies = args, method, dies
        self.counts, self.inside, self.problems, self.by_python = {}, {}, [], 0
        self.folder = tempfile.mkdtemp(prefix="faults-")
        self.token = f"{os.getpid()}-{random.getrandbits(32):x}"
        for name in ("tmp", "runtime"):
            os.mkdir(f"{self.folder}/{name}", 0o700)
        environment = {
            **os.environ,
            MARK: self.token,
            "TMPDIR": f"{self.folder}/tmp",
            "XDG_RUNTIME_DIR": f"{self.folder}/runtime",
            "ULLAGE_AGENT_DEBUG": "1",
        }
        command = [args.python, __file__, "--job", method, str(events), str(seed)]
        command += ["--plain"] if args.plain else []
        command += ["--dies"] if dies else []
        if not args.plain:
            fix = "--fix=all,zygote" if method == "zygote" else "--fix"
            command = [args.ullage, "run", "-q", "--record", f"{self.folder}/run", fix, "--", *command]
        self.names = set(os.listdir("/dev/shm"))
        with open(f"{self.folder}/stderr", "wb") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                cwd=self.folder,
                start_new_session=True,
            )

    def watch(self):
        rest, done = b"", None
        while True:
            if not select.select([self.process.stdout], [], [], 2 * PATIENCE)[0]:
                self.problems.append("hangs: the job")
                stacks(self.token)
                break
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                break
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                told = json.loads(line)
                done = self.heard(told) or done
        self.process.stdout.close()
        if not self.problems:
            code = self.process.wait()
            if self.dies:
                if code not in (-signal.SIGKILL, 128 + signal.SIGKILL):
                    self.problems.append(f"failed: a killed trainer's status is {code}")
                self.counts["kill-of-trainer"] = 1
            elif done is None or code != 0:
                self.problems.append(f"failed: the job ended with {code} after {sum(self.counts.values())} events")
            elif done["holdings"]:
                self.problems.append(f"left: blocks of the arena {done['holdings']}, of {done['pid']}'s job")
        self.judge_what_is_left()
        return self

    def heard(self, told):
        if "event" in told:
            self.counts[told["event"]] = self.counts.get(told["event"], 0) + 1
            self.by_python += bool(told.get("by_python"))
            if told["inside"]:
                self.inside[told["inside"]] = self.inside.get(told["inside"], 0) + 1
            if told["problem"]:
                self.problems.append(told["problem"])
        elif "wrong" in told:
            self.problems.append(f"wrong: {told['wrong']}")
        return told if "done" in told else None

    def judge_what_is_left(self):
        deadline = time.monotonic() + SETTLE
        while (alive := watched.marked(MARK, self.token)) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in alive:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().replace(b"\0", b" ").decode(errors="replace")[:100]
            self.problems.append(f"left: process {pid}: {words}")
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for name in ("tmp", "runtime"):
            for folder, _, files in os.walk(f"{self.folder}/{name}"):
                # The fork server of CPython leaves its socket where its trainer is killed.
                files = [file for file in files if not (self.dies and file.startswith("listener-"))]
                self.problems += [f"left: {name}{folder.rpartition(name)[2]}/{file}" for file in files]
        # What other programs of this machine make goes within moments; what is left stays.
        deadline = time.monotonic() + SETTLE
        while (new := watched.unused_names(self.names)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.problems += [f"left: /dev/shm/{name}" for name in new]
        with open(f"{self.folder}/stderr", errors="replace") as file:
            lines = file.read().splitlines()
        ours = [line for line in lines if "ullage_" in line or "Fatal Python" in line]
        self.problems += [f"failed: on standard error: {line}" for line in ours][:3]
        if self.problems:
            print("\n".join(f"        {line[:200]}" for line in lines[-60:]), flush=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", default="ullage")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--events", type=int, default=10_000, help="of all start methods together")
    parser.add_argument("--seed", type=int, default=0, help="0: another each time")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--deaths", type=int, default=2, help="trainers that are killed, of each start method")
    parser.add_argument("--plain", action="store_true", help="without ullage")
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--dies", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if os.sep in args.ullage:
        args.ullage = os.path.abspath(args.ullage)
    args.python = os.path.abspath(args.python)
    if args.job:
        return faults_job.job(args.job[0], int(args.job[1]), int(args.job[2]), args.plain, args.dies)
    seed = args.seed or random.SystemRandom().randrange(1, 1 << 31)
    methods = args.methods.split(",")
    print(f"seed {seed}", flush=True)
    zeros, events, inside = dict.fromkeys(ZEROS, 0), 0, 0
    for method in methods:
        begin = time.monotonic()
        runs = [Run(args, method, args.events // len(methods), seed).watch()]
        runs += [Run(args, method, 0, seed + 1 + n, dies=True).watch() for n in range(0 if args.plain else args.deaths)]
        counts, hits = {}, {}
        for run in runs:
            for total, some in ((counts, run.counts), (hits, run.inside)):
                for name, number in some.items():
                    total[name] = total.get(name, 0) + number
        problems = [problem for run in runs for problem in run.problems]
        for problem in problems:
            zeros[problem.partition(":")[0]] += 1
        events, inside = events + sum(counts.values()), inside + sum(hits.values())
        by_python, took = sum(run.by_python for run in runs), time.monotonic() - begin
        kinds = " ".join(f"{name}={number}" for name, number in sorted(counts.items()))
        print(f"{method:11} {sum(counts.values())} events, {sum(hits.values())} of them in ullage's code: {kinds}")
        places = sorted(hits, key=hits.get, reverse=True)
        print(f"    where: {' '.join(f'{name}={hits[name]}' for name in places[:14])} ({len(places)} places)")
        print(f"    {by_python} exceptions lost by Python itself, or in the hook of the zygotes  [{took:.0f} s]")
        for problem in problems[:20]:
            print(f"    {problem}")
        sys.stdout.flush()
    words = ", ".join(f"{number} {name}" for name, number in zeros.items())
    print(f"{events} events, {inside} of them in ullage's code: {words}")
    print(f"{events - sum(zeros.values())} passed, {sum(zeros.values())} failed")
    return 0 if not any(zeros.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
