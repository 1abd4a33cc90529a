#!/usr/bin/env python3
"""What watching costs: the same training job with and without `ullage run`, in turn, beside an A/A control.

Three runs a block, in an order that changes from block to block: plain (A), plain again (A'), watched (B).
Printed: the ratios B/A and A'/A block by block with their geometric mean and the upper end of the 95 % interval, for
wall time and for CPU seconds of the whole tree (wait4: the job's processes and ullage itself), the largest
resident set of ullage, and its share of a core beside a process that holds 60,000 mappings and sits still.

    python benches/cost.py --ullage target/release/ullage --python .venv/bin/python [--blocks 40] [--seconds 20]
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond the table the normal one is near enough.
T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 7: 2.36, 9: 2.26, 14: 2.14, 19: 2.09, 29: 2.05, 39: 2.02}

MAPPINGS = """
import mmap, sys, time
held = []
for _ in range(30000):  # a readable page beside a forbidden one: neighbours of one kind would be merged
    page = mmap.mmap(-1, 8192, prot=mmap.PROT_READ)
    held.append(page)
    page = mmap.mmap(-1, 8192, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    held.append(page)
print(sum(1 for _ in open('/proc/self/maps')), flush=True)
time.sleep(float(sys.argv[1]))
"""


def timed(command, env):
    """Wall and CPU seconds of `command` and all that it waited for."""
    start = time.monotonic()
    child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command} ended with {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def upper(values):
    """Mean of ratios and upper end of its 95 % interval, by their logarithms: the plain mean of ratios lies above 1
    for runs that are alike, the more so the noisier the machine."""
    logs = [math.log(value) for value in values]
    mean = statistics.fmean(logs)
    degrees = len(logs) - 1
    if degrees < 1:
        return math.exp(mean), math.inf
    quantile = T95[max(k for k in T95 if k <= degrees)]
    return math.exp(mean), math.exp(mean + quantile * statistics.stdev(logs) / math.sqrt(len(logs)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--steps", type=int, help="steps of the job; default: as many as take --seconds here")
    args = parser.parse_args()
    job = os.path.join(HERE, "cost_job.py")
    twin = "A'"

    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, ULLAGE_HOME=home)
        steps = args.steps
        if steps is None:
            short, _ = timed([args.python, job, "50"], env)
            long, _ = timed([args.python, job, "150"], env)
            per_step = (long - short) / 100
            steps = int(1.1 * (args.seconds - short) / per_step) + 50
        verdict_file = os.path.join(home, "verdict.json")
        kinds = {
            "A": [args.python, job, str(steps)],
            "A'": [args.python, job, str(steps)],
            "B": [args.ullage, "run", "-q", "--json", verdict_file, "--", args.python, job, str(steps)],
        }
        wall, cpu, resident = {k: [] for k in kinds}, {k: [] for k in kinds}, []
        order = list(kinds)
        randomness = random.Random(1)
        for block in range(args.blocks):
            randomness.shuffle(order)
            for kind in order:
                seconds, used = timed(kinds[kind], env)
                wall[kind].append(seconds)
                cpu[kind].append(used)
            with open(verdict_file) as file:
                resident.append(json.load(file)["cost"]["peak_rss_bytes"])
            print(
                f"block {block + 1:3}: wall A {wall['A'][-1]:.2f} A' {wall[twin][-1]:.2f} B {wall['B'][-1]:.2f} s"
                f"   cpu A {cpu['A'][-1]:.2f} B {cpu['B'][-1]:.2f} s",
                flush=True,
            )

        def ratio(figures, kind):
            return upper([b / a for a, b in zip(figures["A"], figures[kind])])

        print(f"\n{args.blocks} blocks of 3 runs, {steps} steps each, median {statistics.median(wall['A']):.1f} s")
        print(f"{'':24}{'mean ratio':>12}{'95 % upper':>12}")
        rows = {
            "wall  B/A": ratio(wall, "B"),
            "wall  A'/A (control)": ratio(wall, "A'"),
            "cpu   B/A": ratio(cpu, "B"),
            "cpu   A'/A (control)": ratio(cpu, "A'"),
        }
        for name, (mean, high) in rows.items():
            print(f"{name:24}{mean:12.4f}{high:12.4f}")
        print(f"largest resident set of ullage: {max(resident) / 2**20:.1f} MiB")

        still = 60
        probe = subprocess.run(
            [args.ullage, "run", "-q", "--json", verdict_file, "--", args.python, "-c", MAPPINGS, str(still)],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        with open(verdict_file) as file:
            share = json.load(file)["cost"]["cpu_share_of_one_core"]
        print(f"beside {probe.stdout.strip()} mappings that sit still for {still} s: {100 * share:.2f} % of a core")

    bars = {
        "wall": rows["wall  B/A"][1] <= 1.01 + max(0.0, rows["wall  A'/A (control)"][1] - 1.0),
        "cpu": rows["cpu   B/A"][0] <= 1.01,
        "resident": max(resident) <= 30 * 2**20,
        "60,000 mappings": share <= 0.01,
    }
    for name, met in bars.items():
        print(f"bar {name}: {'met' if met else 'MISSED'}")
    print(f"{sum(bars.values())} passed, {len(bars) - sum(bars.values())} failed")
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
