#!/usr/bin/env python3
"""What watching costs ullage itself, in CPU time of a core, beside a psutil loop that asks for the same every second.

Each part starts a job under `ullage run` with default options (as nobody, where root starts this), lets it settle, and
then takes the CPU time of ullage's own process over a window: the job's is not in it.

forked    64 forked children of a parent with torch, that sit still: at most 1/20 of the loop's
working   the same 64, each reading some of its parent's objects ten times a second: the same bound
plain     64 processes that sleep: at most 0.35 % of a core
thousand  1,000 forked processes: at most the budget of 0.5 % of a core
mappings  one process with 1,000,000 mappings, vm.max_map_count raised for it (by root): at most the budget

The loop calls `memory_full_info` of every process of the job once a second, over the same window; it knows their pids
and looks for no new ones. A window in which ullage looked at the job less than once in 12 s counts as missed.

    python benches/watching.py --ullage target/release/ullage [--only forked plain] [--seconds 120]
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

from bounds import Checks, cpu_seconds, without_rights

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "watching_job.py")
BUDGET = 0.5  # per cent of a core
BURST = 0.3  # seconds that ullage may spend at once, and saves up for
LIMIT = "/proc/sys/vm/max_map_count"

LOOP = """
import json, psutil, sys, time
processes = [psutil.Process(pid) for pid in json.loads(sys.argv[1])]
for process in processes:
    process.memory_full_info()
print("ready", flush=True)
sys.stdin.readline()
begun, rounds = time.monotonic(), 0
while True:
    for process in processes:
        process.memory_full_info()
    rounds += 1
    print(rounds, flush=True)
    time.sleep(max(0.0, begun + rounds - time.monotonic()))
"""


class Watched:
    """A job under `ullage run`, from its `ready` to its end."""

    def __init__(self, args, folder, kind, count):
        self.folder, self.ullage = folder, args.ullage
        self.verdict_file = os.path.join(folder, f"{kind}.json")
        self.record = os.path.join(folder, kind)
        env = dict(os.environ, ULLAGE_HOME=folder, TMPDIR=folder)
        command = [args.ullage, "run", "-q", "--json", self.verdict_file, "--record", self.record, "--"]
        command += [args.python, JOB, kind, str(count)]
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **without_rights()
        )
        line = self.process.stdout.readline()
        if not line.startswith("ready "):
            raise SystemExit(f"the job {kind} did not start: {line!r}")
        self.pids = json.loads(line[len("ready ") :])

    def cpu(self):
        return cpu_seconds(self.process.pid)

    def now(self):
        return time.monotonic() - self.begun

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=120)
        with open(self.verdict_file) as file:
            return json.load(file)

    def looks(self, since, until):
        """Samples of the recording with all processes in them, between two moments after the start."""
        command = [self.ullage, "export", self.record, "--format", "json"]
        out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        samples = [item["sample"] for item in map(json.loads, out.splitlines()) if "sample" in item]
        return [s for s in samples if since <= s["at"] / 1e9 <= until and len(s["processes"]) >= len(self.pids)]


@contextlib.contextmanager
def loop_of_psutil(args, pids):
    command = [args.python, "-c", LOOP, json.dumps(pids)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    loop = subprocess.Popen(command, text=True, **pipes, **without_rights())
    try:
        if loop.stdout.readline() != "ready\n":
            raise SystemExit(f"psutil is not there for {args.python}, or may not read the job")
        yield loop
    finally:
        loop.kill()
        loop.communicate()


def measure(args, checks, kind, count, peer):
    print(f"{kind}: {count}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        job = Watched(args, folder, kind, count)
        at_ready = job.cpu()
        print(f"  until the job stood: {at_ready:.3f} s of CPU in {job.now():.1f} s", flush=True)
        time.sleep(args.settle)
        with contextlib.ExitStack() as stack:
            loop = stack.enter_context(loop_of_psutil(args, job.pids)) if peer else None
            if loop:
                loop.stdin.write("go\n")
                loop.stdin.flush()
            since, before, loop_before = job.now(), job.cpu(), cpu_seconds(loop.pid) if loop else 0.0
            time.sleep(args.seconds)
            until, after = job.now(), job.cpu()
            loop_spent = cpu_seconds(loop.pid) - loop_before if loop else 0.0
            if loop:
                loop.kill()
                rounds = len(loop.stdout.read().splitlines())
                print(f"  the loop: {rounds} rounds, {1000 * loop_spent / max(rounds, 1):.1f} ms each")
        share = 100 * (after - before) / (until - since)
        whole, spent = job.now(), job.cpu()
        verdict = job.end()
        looks = job.looks(since, until)
        apart, each = (until - since) / max(len(looks), 1), 1000 * (after - before) / max(len(looks), 1)
        print(f"  ullage: {len(looks)} looks at all of it, one in {apart:.2f} s, {each:.2f} ms each")
        print(f"  the whole run: {100 * spent / whole:.3f} % of a core over {whole:.0f} s", flush=True)
        if peer:
            checks.at_most("CPU of ullage by that of the loop", (after - before) / loop_spent, 1 / 20)
        checks.at_most("CPU of ullage in the window", share, 0.35 if kind == "plain" else BUDGET, " % of a core")
        allowed = BUDGET / 100 * whole + BURST
        checks.at_most("CPU of ullage from its start", spent, allowed, " s")
        checks.at_most("seconds between two looks", apart, 12.0, " s")
        told = [text for text in verdict["not_seen"] if "less often" in text]
        print(f"  the report: {100 * verdict['cost']['cpu_share_of_one_core']:.3f} % of a core. {' '.join(told)}")
        slow = apart > 2.0
        if slow != bool(told):
            checks.not_run("the report of a slower pace", "it is not what happened")
        return looks


def mappings(args, checks):
    with open(LIMIT) as file:
        before = int(file.read())
    wanted = 1_000_000
    try:
        if before < wanted + 1000:
            with open(LIMIT, "w") as file:
                file.write(str(2 * wanted))
    except OSError as error:
        checks.not_run("1,000,000 mappings", f"vm.max_map_count cannot be raised ({error})")
        return
    try:
        looks = measure(args, checks, "mappings", wanted, False)
        counted = [process["mappings"] for look in looks for process in look["processes"]]
        print(f"  counted in the window: {[mappings['count'] for mappings in counted if 'count' in mappings]}")
    finally:
        with open(LIMIT, "w") as file:
            file.write(str(before))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["forked", "working", "plain", "thousand", "mappings"]
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable, help="one that has torch and psutil")
    parser.add_argument("--only", nargs="*", choices=parts, default=parts)
    parser.add_argument("--seconds", type=float, default=120.0, help="length of a window")
    parser.add_argument("--settle", type=float, default=20.0, help="seconds from the job's start to the window's")
    args = parser.parse_args()
    checks = Checks()
    for part in args.only:
        if part == "mappings":
            mappings(args, checks)
        else:
            measure(args, checks, part, 1000 if part == "thousand" else 64, part in ("forked", "working"))
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
