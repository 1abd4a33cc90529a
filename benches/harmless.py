#!/usr/bin/env python3
"""Whether watching delays the job: probes of mmap, first touch and munmap in a process of 8 GB, a thousand a second.

First the control: while somebody else reads the process's `smaps_rollup` every second, a probe must be 40 ms late, or
else the probes prove nothing. Then blocks of a minute, not watched and watched in turn, each in a fresh process; a
probe that ends more than 5 ms after it was due is late. Late probes come in episodes, and other load of the machine
makes some in both: watched ones are more frequent where so many would come by chance in one of twenty such
measurements.

In the watched blocks the kernel says how long ullage held the address space of another process (root; see holds.py).

    sudo python benches/harmless.py --ullage target/release/ullage [--seconds 600] [--block 60] [--gigabytes 8]
"""

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time

from bounds import Checks, without_rights
from holds import traced

HERE = os.path.dirname(os.path.abspath(__file__))
PROBER = os.path.join(HERE, "prober.py")


@contextlib.contextmanager
def prober(args, folder, watched):
    """A prober that stands: its process, its pid, and ullage's, or the parent's where it is not watched."""
    command = [args.python, PROBER, str(int(args.gigabytes * (1 << 30)))]
    if watched:
        command = [args.ullage, "run", "-q", "--json", os.path.join(folder, "verdict.json"), "--", *command]
    env = dict(os.environ, ULLAGE_HOME=folder, TMPDIR=folder)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, env=env, text=True, **pipes, **without_rights())
    try:
        ready = process.stdout.readline().split()
        if not ready or ready[0] != "ready":
            raise SystemExit(f"the prober did not start: {ready}")
        yield process, int(ready[1])
    finally:
        process.stdin.close()
        process.wait(timeout=60)


def probe(process, seconds):
    process.stdin.write(f"{seconds}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def told(name, seen):
    figures = "  ".join(f"{key} {1000 * seen[key]:.2f} ms" for key in ("p50", "p99", "p99.9", "longest"))
    late = f"{seen['late']} late in {seen['episodes']} episodes"
    print(f"  {name:12} {seen['probes']} probes, {late}  {figures}", flush=True)


def control(args, checks, folder):
    """A reader of smaps_rollup once a second."""
    took, ended = [], threading.Event()

    def read(pid):
        while not ended.wait(1.0):
            begun = time.monotonic()
            with open(f"/proc/{pid}/smaps_rollup") as file:
                file.read()
            took.append(time.monotonic() - begun)

    print("control: smaps_rollup is read every second", flush=True)
    with prober(args, folder, False) as (process, pid):
        reader = threading.Thread(target=read, args=(pid,))
        reader.start()
        seen = probe(process, 20)
        ended.set()
        reader.join()
    told("control", seen)
    print(f"  {len(took)} readings of {1000 * sum(took) / max(len(took), 1):.0f} ms each")
    checks.at_least("a probe of the control was late by", 1000 * seen["longest"], 40, " ms")


def by_chance(watched, plain):
    """Chance of so many episodes or more in the watched half where both halves are alike."""
    total = watched + plain
    return sum(math.comb(total, k) for k in range(watched, total + 1)) / 2**total


def one(args, folder, watched):
    """One block: what its probes show, and how long ullage held the prober's memory meanwhile."""
    with prober(args, folder, watched) as (process, _):
        time.sleep(args.settle)
        with contextlib.ExitStack() as stack:
            holds = stack.enter_context(traced(process.pid)) if watched and args.holds else None
            return probe(process, args.block), holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=600.0, help="watched, and as many not watched")
    parser.add_argument("--block", type=float, default=60.0)
    parser.add_argument("--settle", type=float, default=3.0, help="seconds before a block's first probe")
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--no-holds", dest="holds", action="store_false", help="without tracing (not root)")
    args = parser.parse_args()
    checks = Checks()
    kinds = ["plain", "watched"]
    sums = {kind: {"probes": 0, "late": 0, "episodes": 0, "longest": 0.0} for kind in kinds}
    others, maps_reads, reads, lost = [], [], [], False
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        control(args, checks, folder)
        blocks = max(round(args.seconds / args.block), 1)
        print(f"{blocks} blocks of {args.block:.0f} s each way, {args.gigabytes:g} GB", flush=True)
        for block in range(blocks):
            for kind in kinds if block % 2 == 0 else reversed(kinds):
                seen, holds = one(args, folder, kind == "watched")
                told(kind, seen)
                for key, before in sums[kind].items():
                    sums[kind][key] = max(before, seen[key]) if key == "longest" else before + seen[key]
                if holds:
                    others += holds.others()
                    maps_reads += holds.maps_reads
                    reads += holds.reads
                    lost |= holds.lost
    plain, watched = sums["plain"], sums["watched"]
    for kind, seen in sums.items():
        late = f"{seen['late']} late in {seen['episodes']} episodes"
        print(f"{kind}: {seen['probes']} probes, {late}, longest {1000 * seen['longest']:.2f} ms")
    chance = by_chance(watched["episodes"], plain["episodes"])
    checks.at_least("so many late episodes or more when watched would come by chance with", chance, 0.05)
    if not args.holds:
        checks.not_run("holds of the target's address space", "it takes root and tracefs")
    elif lost or not others:
        checks.not_run("holds of the target's address space", "events were lost" if lost else "none was seen")
    else:
        print(
            f"holds: {len(others)} of others' mmap_lock, {len(maps_reads)} reads of maps, {len(reads)} of other files"
        )
        checks.at_most("longest hold of another's mmap_lock", 1000 * max(others), 1.0, " ms")
        checks.at_most("longest read of maps", 1000 * max(maps_reads, default=0.0), 1.0, " ms")
        print(f"  longest read of another file: {1000 * max(reads, default=0.0):.3f} ms")
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
