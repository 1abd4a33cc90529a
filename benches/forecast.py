#!/usr/bin/env python3
"""How well is the time foretold that is left until a limit is met? Real leaks in jobs that `ullage run` watches.

A job warms up, leaks in a straight line, in batches of random size and distance that also hold something for a moment,
and says when it was refused. Afterwards the recording is read up to each of its samples in turn: from half of the
leak's time on, the time left then must be within 20 % of what it turned out to be, and the right limit the first of
all. Beside it, on the same readings: a straight line through the last minute by least squares (`predict_linear`
of Prometheus). Jobs that warm up to a plateau or are steady must never be warned of.

    python benches/forecast.py --ullage target/release/ullage --forecasts target/release/examples/forecasts \\
        [--seconds 20 60 180] [--kinds memory fds ...] [--seeds 1] [--at-once 4]

Limits that this user may not set (cgroups, a /dev/shm of its own) are left out, and that is said.
"""

import argparse
import concurrent.futures
import json
import math
import mmap
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "scenarios"))
from surroundings import make_cgroup, remove_cgroups  # noqa: E402

WITHIN = 0.2
# Seconds between two readings, as nobody set it: nearer to the end a fifth of what is left cannot be told.
TICK = 1.0
MIB = 1 << 20
# Users whose tasks are counted by `ulimit -u`, one for each run: nobody else is he.
USER = 64_321

# Kind: name in the verdict, limit, units of the leak until it is met.
KINDS = {
    "memory": ("memory budget", 256 * MIB, 256 * 4),
    "memory in a group": ("cgroup memory", 256 * MIB, 256 * 4),
    "shm": ("/dev/shm bytes", 64 * MIB, 1024),
    "inodes": ("/dev/shm inodes", 4000, 4000),
    "mappings": ("mappings", None, None),
    "fds": ("descriptors", 2000, 2000),
    "pids": ("cgroup tasks", 500, 500),
    "ulimit -u": ("processes", 300, 300),
    "address space": ("address space", 4096 * MIB, 1024),
}
FLAT = ("plateau", "steady")


class Hold:
    """Takes one unit of a kind and keeps it; `give` gives the last one back."""

    def __init__(self, kind):
        self.kind, self.held, self.count = kind, [], 0
        self.stop, self.pipe = threading.Event(), os.pipe()
        if kind == "pids":
            threading.stack_size(65536)

    def take(self):
        kind = self.kind
        if kind.startswith("memory"):
            page = mmap.mmap(-1, MIB // 4, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            page.write(b"x" * len(page))
            self.held.append(page)
        elif kind in ("shm", "inodes"):
            path = f"/dev/shm/leak-{os.getpid()}-{self.count}"
            with open(path, "wb") as file:
                file.write(b"x" * (65536 if kind == "shm" else 0))
            self.held.append(path)
        elif kind == "mappings":
            self.held.append(mmap.mmap(-1, 4096))
        elif kind in ("fds", *FLAT):
            self.held.append(os.open("/dev/null", os.O_RDONLY))
        elif kind == "pids":
            thread = threading.Thread(target=self.stop.wait, daemon=True)
            thread.start()
            self.held.append(thread)
        elif kind == "ulimit -u":
            pid = os.fork()
            if pid == 0:
                # Ends with its parent, who alone keeps the other end open.
                os.close(self.pipe[1])
                os.read(self.pipe[0], 1)
                os._exit(0)
            self.held.append(pid)
        elif kind == "address space":
            self.held.append(mmap.mmap(-1, 4 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        self.count += 1

    def give(self):
        unit, kind = self.held.pop(), self.kind
        if kind in ("shm", "inodes"):
            os.unlink(unit)
        elif kind in ("fds", *FLAT):
            os.close(unit)
        elif kind == "ulimit -u":
            os.kill(unit, 9)
            os.waitpid(unit, 0)
        elif kind == "pids":
            self.held.append(unit)  # a thread stays
        else:
            unit.close()


def follow(hold, chance, target, until, moment):
    """Takes units as `target` of the time says, in batches; what a batch holds for a moment is `moment` units."""
    start, late = time.monotonic(), 0.0
    while time.monotonic() - start < until:
        wanted = target(time.monotonic() - start)
        for _ in range(int(wanted * chance.uniform(0.98, 1.0)) - len(hold.held)):
            hold.take()
        for _ in range(chance.randrange(int(moment) + 1) if hold.kind != "pids" else 0):
            hold.take()
            late += 1
        time.sleep(chance.uniform(0.01, 0.1))
        while late > 0:
            hold.give()
            late -= 1
        time.sleep(chance.uniform(0.01, 0.1))


def leak(kind, units, seconds, seed, told):
    """One process: a warm-up of a tenth of the time, a rest, then the leak, until it is refused."""
    chance = random.Random(seed)
    base, warm = units * chance.uniform(0.05, 0.3), 0.1 * seconds
    hold = Hold(kind)
    moment = 0.01 * units
    follow(hold, chance, lambda t: base * min(1.0, 1.5 * t / warm), warm, moment)
    os.write(told, b"begins %.3f\n" % time.time())
    rate = (units - base) / seconds
    follow(hold, chance, lambda t: base + rate * t, 3 * seconds, moment)


def flat(kind, units, seconds, seed):
    chance = random.Random(seed)
    hold = Hold(kind)
    if kind == "plateau":
        pace = seconds / chance.uniform(3, 12)
        follow(hold, chance, lambda t: 0.9 * units * (1 - math.exp(-t / pace)), seconds, 0.02 * units)
    else:
        follow(hold, chance, lambda t: 0.8 * units, seconds, 0.1 * units)


def job(kind, units, seconds, seed, told):
    """The job itself. Writes into the descriptor `told`, which is open before anything is short."""
    if kind in FLAT:
        flat(kind, units, seconds, seed)
        return 0
    if kind.startswith("memory"):
        # Two processes leak, a third one waits: whom the kernel ends first says when.
        # Where the budget is met before the kernel's limit, ullage ends the job.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(bool(os.write(told, b"ends %.3f\n" % time.time()))))
        leaking = []
        for number in range(2):
            leaking.append(os.fork())
            if leaking[-1] == 0:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                leak(kind, units // 2, seconds, seed + number, told)
                os._exit(0)
        ended, _ = os.wait()
        os.write(told, b"ends %.3f\n" % time.time())
        for pid in set(leaking) - {ended}:
            os.kill(pid, 9)
        return 1
    try:
        leak(kind, units, seconds, seed, told)
    except (OSError, RuntimeError, MemoryError):
        os.write(told, b"ends %.3f\n" % time.time())
        os._exit(1)
    return 0


class Case:
    """One run: a kind of leak, its limit, its speed."""

    def __init__(self, args, kind, seconds, seed):
        self.args, self.kind, self.seconds, self.seed = args, kind, seconds, seed
        self.name, self.limit, self.units = KINDS.get(kind, ("descriptors", 2000, 2000))
        if kind == "mappings":
            with open("/proc/sys/vm/max_map_count") as file:
                self.limit = self.units = int(file.read())
        self.groups = []

    def command(self, told):
        python = [sys.executable, os.path.abspath(__file__), "--job", self.kind, str(self.units)]
        python += [str(self.seconds), str(self.seed), told]
        within = {
            "memory in a group": ("memory", self.limit),
            "pids": ("pids", self.limit),
        }.get(self.kind)
        if within:
            self.groups = make_cgroup(*within)
            return ["sh", "-c", f'echo $$ > {self.groups[0]}/cgroup.procs && exec "$@"', "sh", *python]
        tmpfs = {"shm": f"size={self.limit}", "inodes": f"nr_inodes={self.limit}"}.get(self.kind)
        if tmpfs:
            mount = f'mount -t tmpfs -o {tmpfs} tmpfs /dev/shm && exec "$@"'
            return ["unshare", "-m", "sh", "-c", mount, "sh", *python]
        limits = {
            "fds": ["prlimit", f"--nofile={self.limit}"],
            "plateau": ["prlimit", f"--nofile={self.limit}"],
            "steady": ["prlimit", f"--nofile={self.limit}"],
            "address space": ["prlimit", f"--as={self.limit}"],
            "ulimit -u": [
                "prlimit",
                f"--nproc={self.limit}",
                "setpriv",
                f"--reuid={USER + 100 * self.seed + self.seconds}",
                "--clear-groups",
            ],
        }
        return limits.get(self.kind, []) + python

    def run(self, folder):
        """When the leak began and was refused, and what was known at each sample; times since the run's start."""
        told, record = os.path.join(folder, "told"), os.path.join(folder, "run")
        open(told, "w").close()
        os.chmod(told, 0o666)
        command = [self.args.ullage, "run", "-q", "--record", record]
        if self.kind == "memory":
            command += ["--memory-max", str(self.limit)]
        try:
            done = subprocess.run(
                [*command, "--", *self.command(told)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=4 * self.seconds + 120,
            )
        finally:
            remove_cgroups(self.groups)
        with open(os.path.join(record, "run.json")) as file:
            zero = json.load(file)["started_unix"]
        with open(told) as file:
            marks = [line.split() for line in file]
        times = {what: min(float(t) for w, t in marks if w == what) - zero for what, _ in marks}
        if self.kind not in FLAT and set(times) != {"begins", "ends"}:
            raise RuntimeError(f"{self.kind} was never refused: {marks}, {done.stderr[-500:]}")
        said = subprocess.run([self.args.forecasts, record], stdout=subprocess.PIPE, text=True, check=True).stdout
        return times, [json.loads(line) for line in said.splitlines()]

    def mine(self, limit):
        # Where ullage may make a group, the budget is the group's limit, and stands there under both names.
        names = {"memory budget": ("memory budget", "cgroup memory")}.get(self.name, (self.name,))
        return limit["name"] in names and limit["limit"] == self.limit


def predict_linear(points, limit):
    """Seconds until a straight line through the last minute, by least squares, meets the limit."""
    end = points[-1][0]
    last = [(t - end, value) for t, value in points if end - t <= 60]
    if len(last) < 2 or last[0][0] == last[-1][0]:
        return None
    slope, level = statistics.linear_regression(*zip(*last))
    return (limit - level) / slope if slope > 0 else None


def judge(case, times, samples):
    """What one run says, as figures."""
    figures = {
        "readings": 0,
        "within": 0,
        "first": 0,
        "peer": 0,
        "warned": 0,
        "offs": [],
        "within or tick": 0,
        "missed": [],
    }
    points = []
    ends = times.get("ends", math.inf)
    half = (times.get("begins", 0) + ends) / 2
    for sample in samples:
        if sample["at"] >= ends:
            break
        figures["warned"] += any(limit["warning"] for limit in sample["limits"])
        own = next((limit for limit in sample["limits"] if case.mine(limit)), None)
        if own and own["used"] is not None:
            points.append((sample["at"], own["used"]))
        if sample["at"] < half or case.kind in FLAT:
            continue
        left = ends - sample["at"]

        def off(told, left=left):
            return math.inf if told is None else abs(told - left)

        wrong = off(own and own["left"])
        figures["readings"] += 1
        figures["within"] += wrong <= WITHIN * left
        if wrong > WITHIN * left:
            used, told = (own["used"], own["left"]) if own else (None, None)
            figures["missed"].append(f"at {sample['at']:.2f} s, {left:.2f} s before: told {told}, used {used}")
        figures["within or tick"] += wrong <= max(WITHIN * left, TICK)
        if wrong > TICK:
            figures["offs"].append(wrong / left)
        figures["peer"] += off(predict_linear(points, case.limit) if points else None) <= WITHIN * left
        figures["first"] += case.mine(sample["limits"][0])
    return figures


def allowed(kind):
    """Why a kind cannot be tried here; none where it can."""
    need = {"memory": "memory", "memory in a group": "memory", "pids": "pids"}.get(kind)
    if need:
        try:
            remove_cgroups(make_cgroup(need, 1 << 30 if need == "memory" else 1000))
        except OSError as error:
            return f"no {need} cgroup may be made ({error})"
    if kind in ("shm", "inodes") and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        return "no /dev/shm of its own may be mounted"
    if kind == "ulimit -u" and os.geteuid() != 0:
        return "only root may become another user"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage")
    parser.add_argument("--forecasts")
    parser.add_argument("--seconds", nargs="*", type=int, default=[20, 60, 180], help="from the leak's begin")
    parser.add_argument("--kinds", nargs="*", choices=[*KINDS, *FLAT], default=[*KINDS, *FLAT])
    parser.add_argument("--seeds", type=int, default=1, help="runs of each kind and speed")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--keep", help="folder for the recordings; default: they are removed")
    parser.add_argument("--verbose", action="store_true", help="print readings that are off")
    parser.add_argument("--job", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        kind, units, seconds, seed, told = args.job
        return job(kind, int(units), float(seconds), int(seed), os.open(told, os.O_WRONLY | os.O_APPEND))
    left_out = {kind: why for kind in args.kinds if (why := allowed(kind))}
    for kind, why in left_out.items():
        print(f"{kind}: left out: {why}")
    cases = [
        Case(args, kind, seconds, seed)
        for seconds in sorted(args.seconds, reverse=True)
        for kind in args.kinds
        if kind not in left_out
        for seed in range(args.seeds)
    ]
    results = []
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        os.chmod(temporary, 0o711)
        folders = []
        for number in range(len(cases)):
            folders.append(os.path.join(args.keep or temporary, str(number)))
            os.makedirs(folders[-1], exist_ok=True)
        for case, future in [(c, pool.submit(c.run, f)) for c, f in zip(cases, folders)]:
            try:
                times, samples = future.result()
            except Exception as error:  # one run that failed to happen is told, and counts as missed
                print(f"{case.kind}, {case.seconds} s: FAILED: {error}", flush=True)
                results.append((case, None))
                continue
            got = judge(case, times, samples)
            results.append((case, got))
            if case.kind in FLAT:
                print(f"{case.kind}, {case.seconds} s: {len(samples)} samples, {got['warned']} of them with a warning")
                continue
            worst = f"{100 * max(got['offs'], default=0):.0f} %"
            print(
                f"{case.kind}, {case.seconds} s: of {got['readings']} readings {got['within']} within 20 %, "
                f"{got['within or tick']} within 20 % or {TICK:.0f} s, worst of the others {worst}; right limit "
                f"first in {got['first']}; predict_linear within 20 %: {got['peer']}",
                flush=True,
            )
            if args.verbose:
                print(*got["missed"], sep="\n", flush=True)
    return conclude(results)


def conclude(results):
    leaks = [got for case, got in results if got and case.kind not in FLAT]
    calm = [got for case, got in results if got and case.kind in FLAT]
    failed = sum(got is None for _, got in results)

    def total(what):
        return sum(got[what] for got in leaks)

    bars = {}
    if leaks:
        readings = total("readings")
        print(f"\n{len(leaks)} leaks, {readings} readings from half-way on")
        for what in ("within", "within or tick", "first", "peer"):
            text = {
                "within": "within 20 %",
                "within or tick": f"within 20 % or {TICK:.0f} s",
                "first": "right limit first",
                "peer": "predict_linear within 20 %",
            }[what]
            print(f"{text}: {total(what)} of {readings} ({100 * total(what) / readings:.1f} %)")
        worst = max((off for got in leaks for off in got["offs"]), default=0)
        print(f"the worst that was more than {TICK:.0f} s off: {100 * worst:.0f} %")
        first = sum(got["first"] == got["readings"] for got in leaks)
        print(f"right limit first at every reading: {first} of {len(leaks)} runs")
        bars[f"within 20 % or {TICK:.0f} s at every reading"] = total("within or tick") == readings
        bars["right limit first in every run"] = first == len(leaks)
    if calm:
        warned = sum(got["warned"] > 0 for got in calm)
        print(f"false warnings: {warned} of {len(calm)} steady runs and plateaus")
        bars["no false warning"] = warned == 0
    bars["every run ended as it should"] = failed == 0
    for name, met in bars.items():
        print(f"bar {name}: {'met' if met else 'MISSED'}")
    print(f"{sum(bars.values())} passed, {len(bars) - sum(bars.values())} failed")
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
