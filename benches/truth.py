#!/usr/bin/env python3
"""Is what `ullage run` says of a job's memory true?

Jobs of known shape are run under `ullage run` with default options, as an ordinary user where this is started by root.
The truth is counted, not believed: while a job holds still, its page tables are read in full and distinct page frames
counted (that takes root; without it only what follows from the job's shape is checked). What each child copied is known
by comparing its page frames right after the fork with those at the end.

family    a parent of 1 GB and ten children that do nothing
halves    four children that write to half of 1 GB: two to one run, two to pages all over it
parent    a parent that rewrites a quarter of its 1 GB and frees a quarter, over one child (parent2: over two)
segments  shared anonymous memory and a file in /dev/shm, of which siblings have touched different parts
memfd     a memfd that two processes have
files     a mapped file that four children have read in part
loader    a DataLoader with four workers over a list of 2,000,000 str (needs torch)
churn     processes that come, grow, fork and go: as many samples as --seconds allow, each beside what its cgroup and
          the machine hold

The first four with and without huge pages (madvise).

    python benches/truth.py [--ullage target/release/ullage] [--totals target/release/examples/totals]
                            [--only family halves ...] [--seconds 60 | --samples 10000] [--mib 1024]
"""

import argparse
import bisect
import glob
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import bounds
from truth_jobs import MIB, PAGE, job

NOBODY = 65534
PRIVATE = ("anonymous", "python-heap", "malloc", "malloc-in-use", "malloc-freed-but-held", "stacks", "large-blocks")
BEFORE_S, AFTER_S = 0.05, 0.3  # a sample lasts so long at most, and clocks may differ
PRESENT, OF_A_FILE, FRAME = 1 << 63, 1 << 61, (1 << 55) - 1


class Checks(bounds.Checks):
    def off_by(self, what, figure, truth, bound, of=None, unit="%"):
        of = truth if of is None else of
        off = 100.0 * (figure - truth) / of if of else float("inf")
        told = f"{figure / MIB:.1f} MiB for {truth / MIB:.1f} MiB: off by {off:+.2f} {unit} (bound {bound:g} {unit})"
        self.tell(f"{what}: {told}", abs(off) <= bound)


# --- the truth: page frames ------------------------------------------------------------------------------


def tables(pid):
    """Address to page frame of every resident page: private ones, those of shared memory, and those of files."""
    import numpy

    own, shared, files = {}, {}, {}
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for line in maps:
            fields = line.split(None, 5)
            path = fields[5].strip() if len(fields) > 5 else ""
            if path in ("[vsyscall]", "[vvar]", "[vdso]", "[vvar_vclock]"):
                continue
            start, end = (int(part, 16) // PAGE for part in fields[0].split("-"))
            in_memory = path.startswith(("/dev/shm/", "/memfd:", "/SYSV", "/dev/zero")) or (
                fields[1][3] == "s" and not path
            )
            pagemap.seek(start * 8)
            at = start
            while at < end:
                read = pagemap.read(min(end - at, 1 << 17) * 8)
                if not read:
                    break
                entries = numpy.frombuffer(read, numpy.uint64)
                present = numpy.nonzero(entries & numpy.uint64(PRESENT))[0]
                of_file = (entries & numpy.uint64(OF_A_FILE)) != 0
                frames = entries & numpy.uint64(FRAME)
                for offset in present:
                    frame = int(frames[offset])
                    if not of_file[offset]:
                        own[at + int(offset)] = frame
                    elif in_memory:
                        shared[at + int(offset)] = frame
                    else:
                        files[at + int(offset)] = frame
                at += len(entries)
    return own, shared, files


def zero_frame():
    page = mmap.mmap(-1, PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    assert page[0] == 0
    import ctypes

    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
        pagemap.seek(address // PAGE * 8)
        return int.from_bytes(pagemap.read(8), sys.byteorder) & FRAME


def page_tables(pid):
    with open(f"/proc/{pid}/status") as status:
        return sum(int(line.split()[1]) << 10 for line in status if line.startswith("VmPTE:"))


class Truth:
    def __init__(self, pids):
        self.of = {pid: tables(pid) for pid in pids}
        zero = zero_frame()
        for own, _, _ in self.of.values():
            for address in [address for address, frame in own.items() if frame == zero]:
                del own[address]
        union = [set().union(*(set(table[kind].values()) for table in self.of.values())) for kind in range(3)]
        self.private, self.shared, self.files = (len(frames) * PAGE for frames in union)
        self.page_tables = sum(page_tables(pid) for pid in pids)
        self.whole = self.private + self.shared + self.files + self.page_tables

    def copied(self, pid, parent, before):
        """Bytes that the child began with and has a page frame of its own for now: it wrote there. Pages that the
        kernel moved to another frame meanwhile are still shared."""
        now, then = self.of[pid][0], before.of[pid if pid in before.of else parent][0]
        others = set().union(*(set(table[0].values()) for other, table in self.of.items() if other != pid))
        return sum(PAGE for address, frame in now.items() if then.get(address, frame) != frame and frame not in others)


# --- the harness -----------------------------------------------------------------------------------------


class Run:
    """One job below `ullage run`, as an ordinary user."""

    def __init__(self, options, name, size, huge):
        self.folder = tempfile.mkdtemp(prefix=f"truth-{name}-", dir=options.scratch)
        os.chmod(self.folder, 0o777)
        self.verdict_path = os.path.join(self.folder, "verdict.json")
        self.record = os.path.join(self.folder, "record")
        arguments = [options.ullage, "run", "-q", "--json", self.verdict_path, "--record", self.record]
        arguments += ["--interval", options.interval, "--watch-cpu", options.watch_cpu] if name == "churn" else []
        arguments += ["--", options.python, os.path.abspath(__file__), "--job", name, "--folder", self.folder]
        arguments += ["--mib", str(size // MIB)] + (["--huge"] if huge else [])
        self.group = options.group
        if os.getuid() == 0:
            arguments = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] + arguments
        environment = dict(os.environ, ULLAGE_HOME=self.folder, TMPDIR=self.folder, HOME=self.folder)
        self.process = subprocess.Popen(
            arguments, env=environment, stdout=sys.stderr, preexec_fn=self.enter if self.group else None
        )

    def enter(self):
        with open(os.path.join(self.group, "cgroup.procs"), "w") as procs:
            procs.write(str(os.getpid()))

    def reached(self, name, timeout=180):
        """What the job says there; it waits until `go_on`."""
        path = os.path.join(self.folder, name)
        deadline = time.monotonic() + timeout
        while not os.path.exists(path):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the job did not reach {name} (exit {self.process.poll()})")
            time.sleep(0.02)
        with open(path) as file:
            return json.load(file)

    def go_on(self, name):
        open(os.path.join(self.folder, name + ".seen"), "w").close()

    def end(self):
        open(os.path.join(self.folder, "end"), "w").close()
        self.process.wait(timeout=120)
        with open(self.verdict_path) as file:
            return json.load(file)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def shaped(checks, options, name, huge):
    """A job that reaches a state and holds still."""
    size = options.mib * MIB
    print(f"{name}{' with huge pages' if huge else ''}", flush=True)
    run = Run(options, name, size, huge)
    try:
        told = run.reached("forked")
        pids = [told["parent"]] + told["children"]
        before = Truth(pids) if options.frames else None
        time.sleep(options.settle)
        run.go_on("forked")
        told = run.reached("ready")
        pids = [told["parent"]] + told["children"]
        time.sleep(options.settle)
        truth = Truth(pids) if options.frames else None
        run.go_on("ready")
        verdict = run.end()
    except BaseException:
        run.process.kill()
        raise
    finally:
        run.remove()
    memory = verdict["memory"]
    last = memory["last"]
    if last is None:
        checks.at_most("no look at pages was made", 1, 0)
        return
    if truth is None:
        return by_shape(checks, name, size, memory)
    print(f"  source: {last['source']}; give or take {last['error_bytes'] / MIB:.1f} MiB", flush=True)
    part = last["categories"]

    def of(*ids):
        return sum(part.get(id, 0) for id in ids)

    checks.off_by("tree, at the last look", last["bytes"], truth.whole, 2)
    checks.off_by("tree, at its peak", memory["peak_bytes"], max(truth.whole, before.whole), 2)
    private = of(*PRIVATE)
    checks.off_by("private memory", private, truth.private, 5)
    for what, figure, true in [
        (
            "shared memory",
            of("torch-shared", "ullage-arena", "ullage-share", "memfd", "sysv", "other-shared", "shared"),
            truth.shared,
        ),
        ("mapped files", of("mapped-files", "file"), truth.files),
    ]:
        # Of a category that hardly exists a share says nothing.
        checks.off_by(what, figure, true, 5, of=max(true, truth.whole / 20))
    checks.at_most("unexplained", 100 * last["unexplained_share"], 2, " %")
    cost = verdict["cost"]
    print(
        f"  watching took {100 * cost['cpu_share_of_one_core']:.2f} % of a core over {verdict['duration_s']:.1f} s, "
        f"{cost['peak_rss_bytes'] / MIB:.1f} MiB",
        flush=True,
    )
    copies = {entry["process"]["pid"]: entry for entry in memory["copy_on_write"]}
    if name in ("family", "halves", "parent", "parent2", "loader"):
        for pid in told["children"]:
            entry = copies.get(pid)
            if entry is None:
                checks.at_most(f"child {pid} is not told", 1, 0)
                continue
            parent = told["parent"]
            inherited = len(before.of[pid if pid in before.of else parent][0]) * PAGE
            copied = truth.copied(pid, parent, before)
            figure = entry["copied_bytes"] + (entry["unknown_bytes"] if name == "loader" else 0)
            told_apart = "" if name != "loader" else ", with what cannot be told"
            checks.off_by(f"copied by child {pid}{told_apart}", figure, copied, 2, of=inherited, unit="points")
            print(
                f"    shared {entry['shared_bytes'] / MIB:.1f}, copied {entry['copied_bytes'] / MIB:.1f}, parent "
                f"{entry['parent_changed_bytes'] / MIB:.1f}, unknown {entry['unknown_bytes'] / MIB:.1f}, new "
                f"{entry['new_bytes'] / MIB:.1f} MiB, give or take {entry['error_bytes'] / MIB:.1f}",
                flush=True,
            )


def by_shape(checks, name, size, memory):
    """Without page frames: what follows from the job's shape, and an interpreter's few megabytes."""
    copied = [entry["copied_bytes"] for entry in memory["copy_on_write"]]
    private = {"family": size, "halves": 3 * size, "parent": size * 5 // 4, "parent2": size * 5 // 4}.get(name)
    if private:
        part = memory["last"]["categories"]
        figure = sum(part.get(id, 0) for id in PRIVATE)
        checks.off_by("private memory", figure, private, 5)
    expected = {"halves": size // 2, "family": 0, "parent": 0, "parent2": 0}.get(name)
    if expected is not None:
        for figure in copied:
            checks.off_by("copied", figure, expected, 2, of=size, unit="points")


def churning(checks, options):
    print("churn", flush=True)
    run = Run(options, "churn", options.mib * MIB, False)
    polls, stop = [], threading.Event()
    in_use = InUse(options.group)

    def poll():
        while not stop.is_set():
            polls.append((time.time(), in_use.most_since_last()))
            stop.wait(0.01)

    def totals():
        return subprocess.run(
            [options.totals, run.record], stdout=subprocess.PIPE, check=True, timeout=600, text=True
        ).stdout.splitlines()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        until = time.monotonic() + options.seconds
        while time.monotonic() < until and run.process.poll() is None:
            time.sleep(min(20.0, max(until - time.monotonic(), 0.0)))
            if options.samples and len(totals()) >= options.samples:
                break
        verdict = run.end()
        stop.set()
        thread.join()
        lines = totals()
        with open(os.path.join(run.record, "run.json")) as file:
            started = json.load(file)["started_unix"]
    finally:
        stop.set()
        if not options.keep:
            run.remove()
    above = worst = held = 0
    samples = [json.loads(line) for line in lines]
    times = [at - started for at, _ in polls]
    for sample in samples:
        # A sample is not of one instant: it says when it began. A poll tells the most since the one before.
        first = max(bisect.bisect_left(times, sample["at_s"] - BEFORE_S) - 1, 0)
        last = bisect.bisect_right(times, sample["at_s"] + AFTER_S) + 1
        bound = max((used for _, used in polls[first:last]), default=0)
        held += sample["held"]
        if bound and sample["bytes"] > bound:
            above += 1
            print(f"  at {sample['at_s']:.2f} s: {sample['bytes'] / MIB:.1f} MiB, in use {bound / MIB:.1f}", flush=True)
            worst = max(worst, sample["bytes"] - bound)
    checks.at_most(f"samples above what was in use, of {len(samples)}", above, 0)
    if options.samples:
        checks.at_least("samples", len(samples), options.samples)
    most = max(used for _, used in polls)
    bound = f"its cgroup, {in_use.how}" if options.group else "the machine"
    print(
        f"  worst {worst / MIB:.1f} MiB above; {held} held to what was in use; peak "
        f"{verdict['memory']['peak_bytes'] / MIB:.1f} MiB, in use at most {most / MIB:.1f} MiB; "
        f"bound: {bound}; {len(polls)} polls",
        flush=True,
    )


class InUse:
    """What a cgroup, or else the machine, has in use: where the kernel keeps its peak and lets it be set back, the most
    since it was asked last, so that no peak is missed between two polls."""

    def __init__(self, group):
        self.group, self.peak, self.how = group, None, "polled"
        # v2 sets the peak back for this descriptor alone (kernel 6.12), v1 for everybody.
        for name in ("memory.peak", "memory.max_usage_in_bytes") if group else ():
            try:
                self.peak = os.open(os.path.join(group, name), os.O_RDWR)
                os.write(self.peak, b"0")
                self.how = "with the peaks between polls"
                break
            except OSError:
                self.peak = None

    def most_since_last(self):
        used = machine_in_use()
        if not self.group:
            return used
        now = 0
        for name in ("memory.current", "memory.usage_in_bytes"):
            path = os.path.join(self.group, name)
            if os.path.exists(path):
                with open(path) as file:
                    now = int(file.read())
        if self.peak is not None:
            now = max(now, int(os.pread(self.peak, 64, 0)))
            os.pwrite(self.peak, b"0", 0)
        # What the machine has in use is at one instant, and the peak of another may be above it.
        return now if self.peak is not None else min(used, now)


def machine_in_use():
    with open("/proc/meminfo") as meminfo:
        lines = dict(line.split(":") for line in meminfo)
    kib = {key: int(value.split()[0]) for key, value in lines.items()}
    return (kib["MemTotal"] - kib["MemFree"] + kib["SwapTotal"] - kib["SwapFree"]) << 10


def make_group():
    """A memory cgroup for the job, where this user may make one."""
    for line in open("/proc/self/cgroup"):
        _, controllers, path = line.strip().split(":", 2)
        if controllers == "memory":
            places = glob.glob("/sys/fs/cgroup/memory" + path)
        elif controllers == "" and os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            places = ["/sys/fs/cgroup" + path]
        else:
            continue
        for place in places:
            group = os.path.join(place, f"truth-{os.getpid()}")
            try:
                os.mkdir(group)
            except OSError:
                continue
            if os.path.exists(os.path.join(group, "memory.usage_in_bytes")) or os.path.exists(
                os.path.join(group, "memory.current")
            ):
                return group
            os.rmdir(group)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", default="target/release/ullage")
    parser.add_argument("--totals", default="target/release/examples/totals")
    parser.add_argument("--python", default=sys.executable, help="what runs the jobs; every user may execute it")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seconds", type=float, help="how long churn lasts, at most: 60, with --samples 3000")
    parser.add_argument("--samples", type=int, help="end churn after so many samples")
    parser.add_argument("--interval", default="50ms", help="between two samples of churn")
    parser.add_argument("--watch-cpu", default="30", help="%% of a core that watching churn may take")
    parser.add_argument("--settle", type=float, default=4.0)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--scratch", default=None, help="a folder that every user may reach")
    parser.add_argument("--keep", action="store_true", help="keep the recording of churn")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--huge", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        return job(options.job, options.folder, options.mib * MIB, options.huge)
    options.ullage, options.totals = os.path.abspath(options.ullage), os.path.abspath(options.totals)
    options.frames = os.getuid() == 0
    options.seconds = options.seconds or (3000 if options.samples else 60)
    options.group = None
    wanted = options.only or ["family", "halves", "parent", "parent2", "segments", "memfd", "files", "loader", "churn"]
    checks = Checks()
    for name in wanted:
        if name == "churn":
            options.group = make_group()
            try:
                churning(checks, options)
            finally:
                if options.group:
                    os.rmdir(options.group)
                options.group = None
            continue
        for huge in (False, True) if name in ("family", "halves", "parent", "parent2") else (False,):
            shaped(checks, options, name, huge)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
