#!/usr/bin/env python3
"""Whether watching delays the job: probes of mmap, first touch and munmap in a process of 8 GB, a thousand a second.

First the control: while somebody else reads the process's `smaps_rollup` every second, a probe must be 40 ms late, or
else the probes prove nothing. Then blocks of ten seconds in one process under `ullage run`, watched and not watched in
turn, by stopping ullage (SIGSTOP): what else the machine does is much the same in two neighbours. A probe that ends
more than 5 ms after it was due is late; late probes come in episodes. Watched blocks have more of them where the
differences between neighbours add up to so much by chance in one of twenty such measurements at most.

In the watched blocks the kernel says how long ullage held the address space of another process (root; see holds.py). A
reader that lost its processor in the middle holds on meanwhile, so that 1 ms is the bound twice: by the clock, which is
what the job feels and an idle machine can keep; and on a processor, which is what ullage does. How many of 10,000 were
longer by the clock, and who ran then, is told beside. What a hypervisor took away is in both, and shows nowhere but in
the machine's stolen time.
On a machine that is busy with something else, --realtime (root) lets the prober go before everybody: it waits for
locks then, and not for a processor.

    sudo python benches/harmless.py --ullage target/release/ullage [--seconds 600] [--gigabytes 8] [--realtime]
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from bounds import Checks, by_chance, without_rights
from holds import traced

HERE = os.path.dirname(os.path.abspath(__file__))
SETTLE = 3.0  # seconds
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
        if args.realtime:
            os.sched_setscheduler(int(ready[1]), os.SCHED_FIFO, os.sched_param(1))
        yield process, int(ready[1])
    finally:
        process.send_signal(signal.SIGCONT)
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


def stolen_seconds():
    """Of all processors since boot; 0 where no hypervisor tells."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def block(args, process, ullage, watched):
    """One block: what its probes show, and how long ullage held the prober's memory meanwhile."""
    os.kill(ullage, signal.SIGCONT if watched else signal.SIGSTOP)
    with contextlib.ExitStack() as stack:
        holds = stack.enter_context(traced(ullage)) if watched and args.holds else None
        return probe(process, args.block), holds


def longest(holds):
    return max((hold.held for hold in holds), default=0.0)


def longest_on(holds):
    return max((hold.held - hold.off for hold in holds), default=0.0)


def tell_longest(holds):
    """Those over 1 ms, each with what it was for and who ran meanwhile."""
    over = sorted((hold for hold in holds if hold.held > 0.001), reverse=True)
    print(f"  {len(over)} of them over 1 ms; {sum(hold.off > 0 for hold in holds)} lost the processor meanwhile")
    for hold in over[:10]:
        off = f"{1000 * hold.off:.2f} of them off the processor: {hold.instead}" if hold.off else "all on the processor"
        print(f"    {1000 * hold.held:.2f} ms, {off}; in {hold.told()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=600.0, help="watched, and as many not watched")
    parser.add_argument("--block", type=float, default=10.0)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--realtime", action="store_true", help="the prober goes before everybody (root)")
    parser.add_argument("--no-holds", dest="holds", action="store_false", help="without tracing (not root)")
    args = parser.parse_args()
    checks = Checks()
    sums = {kind: {"probes": 0, "late": 0, "episodes": 0, "longest": 0.0} for kind in ("plain", "watched")}
    others, maps_reads, reads, lost, pairs = [], [], [], False, []
    stolen = stolen_seconds()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        control(args, checks, folder)
        number = max(round(args.seconds / args.block), 1)
        print(f"{number} blocks of {args.block:.0f} s each way, {args.gigabytes:g} GB", flush=True)
        with prober(args, folder, True) as (process, _):
            time.sleep(SETTLE)
            for pair in range(number):
                episodes = {}
                for kind in list(sums) if pair % 2 == 0 else reversed(list(sums)):
                    seen, holds = block(args, process, process.pid, kind == "watched")
                    told(kind, seen)
                    episodes[kind] = seen["episodes"]
                    for key, before in sums[kind].items():
                        sums[kind][key] = max(before, seen[key]) if key == "longest" else before + seen[key]
                    if holds:
                        others += holds.others()
                        maps_reads += holds.maps_reads
                        reads += holds.reads
                        lost |= holds.lost
                pairs.append((episodes["watched"], episodes["plain"]))
    for kind, seen in sums.items():
        late = f"{seen['late']} late in {seen['episodes']} episodes"
        print(f"{kind}: {seen['probes']} probes, {late}, longest {1000 * seen['longest']:.2f} ms")
    load, taken = os.getloadavg()[1], stolen_seconds() - stolen
    print(f"load average {load:.1f} on {os.cpu_count()} processors, {taken:.2f} s of which a hypervisor took")
    checks.at_least("chance of so many more late episodes when watched", by_chance(pairs), 0.05)
    if not args.holds:
        checks.not_run("holds of the target's address space", "it takes root and tracefs")
    elif lost or not others:
        checks.not_run("holds of the target's address space", "events were lost" if lost else "none was seen")
    else:
        print(f"holds: {len(others)} of others' mmap_lock; {len(maps_reads)} reads of maps, {len(reads)} other reads")
        tell_longest(others)
        checks.at_most("longest hold of another's mmap_lock, by the clock", 1000 * longest(others), 1.0, " ms")
        checks.at_most("longest hold of another's mmap_lock, on a processor", 1000 * longest_on(others), 1.0, " ms")
        checks.at_most("longest read of maps, on a processor", 1000 * longest_on(maps_reads), 1.0, " ms")
        over = 100 * sum(hold.held > 0.001 for hold in others + maps_reads) / len(others + maps_reads)
        checks.at_most("holds and reads of maps over 1 ms by the clock", over, 0.02, " %")
        print(f"  longest read of maps by the clock: {1000 * longest(maps_reads):.3f} ms")
        print(f"  longest read of another file: {1000 * longest(reads):.3f} ms")
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
