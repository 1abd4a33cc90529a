#!/usr/bin/env python3
"""Real runs under cgroup v1: limits met and not met, above, unlimited, out of sight, and full of page cache.

    python tests/cgroup_v1.py --ullage target/release/ullage

Needs root (to make groups; the jobs run as nobody) and a machine with cgroup v1. The last line is `N passed, M failed`;
exit status 1 where a case failed, 2 where the machine does not allow the test.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = "/sys/fs/cgroup"
NOBODY = 65534
MIB = 1 << 20
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable

GROW = """
import sys, time
held = bytearray()
for _ in range(int(sys.argv[1]) // 8):
    held += b"x" * (8 << 20)
    time.sleep(0.05)
time.sleep(3)
"""
# Cache of pages that were read twice is "active": it counts as little as the rest.
READ = """
import os, sys, time
folder, each, count = sys.argv[1], 8 << 20, int(sys.argv[2]) // 8
for index in range(count):
    with open(f"{folder}/{index}", "wb", buffering=0) as file:
        file.write(os.urandom(each))
        os.fsync(file.fileno())
for _ in range(4):
    for index in range(count):
        with open(f"{folder}/{index}", "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
time.sleep(2.5)
"""
CASES = []


def case(function):
    CASES.append(function)
    return function


class Groups:
    """v1 groups below an own one, removed at the end."""

    def __init__(self):
        self.name, self.made = f"ullage-test-{os.getpid()}", []
        self.make("memory")
        self.make("pids")

    def make(self, controller, path="", **settings):
        folder = f"{ROOT}/{controller}/{self.name}{path}"
        os.mkdir(folder)
        self.made.insert(0, folder)
        for key, value in settings.items():
            with open(f"{folder}/{controller}.{key}", "w") as file:
                file.write(str(value))
        return f"/{self.name}{path}"

    def number(self, path, name, controller="memory"):
        with open(f"{ROOT}/{controller}{path}/{controller}.{name}") as file:
            return int(file.read())

    def remove(self):
        for folder in self.made:
            for _ in range(50):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.1)


class Run:
    """One `ullage run` inside a memory group (and a pids group), as nobody."""

    def __init__(self, ullage, folder, job, memory, pids=None, within=()):
        verdict = f"{folder}/verdict.json"
        enter = f"echo $$ > {ROOT}/memory{memory}/cgroup.procs && "
        if pids:
            enter += f"echo $$ > {ROOT}/pids{pids}/cgroup.procs && "
        nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        command = [*within, *nobody, ullage, "run", "-q", "--json", verdict, "--", PYTHON, "-c", *job]
        home = dict(os.environ, ULLAGE_HOME=f"{folder}/home", TMPDIR=folder)
        self.ended = subprocess.run(
            ["sh", "-c", enter + 'exec "$@"', "sh", *command], env=home, capture_output=True, text=True, timeout=120
        )
        self.ullage, self.home = ullage, f"{folder}/home"
        try:
            with open(verdict) as file:
                self.verdict = json.load(file)
        except OSError:
            raise AssertionError(f"no verdict: {self.ended.returncode} {self.ended.stderr[-400:]}") from None

    def limits(self, name="cgroup memory"):
        """Finite limits of this name, in the order of the verdict."""
        return [one for one in self.verdict["limits"] if one["name"] == name and isinstance(one["limit"], int)]

    def most(self, group):
        """The most that was recorded of a group while the job ran: (all that it held, that without page cache)."""
        (run,) = os.listdir(self.home)
        said = subprocess.run(
            [self.ullage, "export", f"{self.home}/{run}", "--format", "json"],
            capture_output=True,
            text=True,
            check=True,
        )
        held = used = 0
        for line in said.stdout.splitlines():
            for reading in json.loads(line).get("sample", {}).get("cgroups", []):
                memory = reading["memory"].get("known")
                if reading["path"] == group and memory:
                    parts = memory["parts"]["known"]
                    held = max(held, memory["current"])
                    used = max(used, memory["current"] - (parts["file"] - parts["shared"]))
        return held, used

    def causes(self):
        return [(f["cause"], f["severity"], f["status"]) for f in self.verdict["findings"]]


def killed_at(run, path, limit):
    first = run.verdict["findings"][0] if run.verdict["findings"] else {}
    yield "the kernel's OOM killer is the cause", first.get("cause") == "memcg-oom-kill", run.causes()
    yield "it is established", first.get("status") == "established", run.causes()
    yield "COMMAND was killed by it", run.verdict["outcome"]["kind"] == "oom-kill", run.verdict["outcome"]
    told = [one for one in run.limits() if one["scope"] == f"cgroup {path}"]
    yield "the limit is the one that was set", [one["limit"] for one in told] == [limit], run.limits()


def healthy(run):
    yield "healthy", run.verdict["healthy"] is True, (run.causes(), run.verdict["outcome"])
    worse = [one for one in run.causes() if one[1] != "note"]
    yield "no warning", not worse, worse


@case
def the_limit_is_met(world):
    group = world.groups.make("memory", "/met", limit_in_bytes=128 * MIB)
    run = world.run([GROW, "400"], group)
    yield "the kernel counted a kill", world.kills(group) == 1, world.kills(group)
    yield from killed_at(run, group, 128 * MIB)


@case
def a_job_below_its_limit(world):
    group = world.groups.make("memory", "/below", limit_in_bytes=400 * MIB)
    run = world.run([GROW, "200"], group)
    yield from healthy(run)
    (limit,) = run.limits()
    _, used = run.most(group)
    yield "used is what it held", 200 * MIB <= used <= 260 * MIB, used
    yield "and the limit", limit["limit"] == 400 * MIB, limit


@case
def the_limit_of_an_ancestor_is_met(world):
    above = world.groups.make("memory", "/above", limit_in_bytes=128 * MIB)
    group = world.groups.make("memory", "/above/inner")
    run = world.run([GROW, "400"], group)
    yield "the kill is counted in the inner group", world.kills(group) == 1, world.kills(group)
    yield from killed_at(run, above, 128 * MIB)


@case
def the_tightest_of_three_is_in_the_middle(world):
    world.groups.make("memory", "/wide", limit_in_bytes=2000 * MIB)
    middle = world.groups.make("memory", "/wide/tight", limit_in_bytes=300 * MIB)
    group = world.groups.make("memory", "/wide/tight/own", limit_in_bytes=1000 * MIB)
    run = world.run([GROW, "160"], group)
    yield from healthy(run)
    yield "all three are listed", len(run.limits()) == 3, run.limits()
    yield "the tightest first", run.limits()[0]["scope"] == f"cgroup {middle}", run.limits()


@case
def a_group_full_of_page_cache(world):
    group = world.groups.make("memory", "/cache", limit_in_bytes=160 * MIB)
    data = os.path.join(world.folder, "data")
    os.mkdir(data, 0o777)
    os.chmod(data, 0o777)
    run = world.run([READ, data, "320"], group)
    (limit,) = run.limits()
    hits = world.groups.number(group, "failcnt")
    peak = world.groups.number(group, "max_usage_in_bytes")
    yield "the cache filled the group to its limit", hits > 0 and peak > 150 * MIB, (hits, peak)
    yield from healthy(run)
    held, used = run.most(group)
    yield "cache is not use", held > 150 * MIB and max(used, limit["used"]) < 80 * MIB, (held, used, limit)
    yield "and no time is left to run out", limit["time_left_s"] is None, limit


@case
def unlimited_is_not_a_number(world):
    group = world.groups.make("memory", "/free")
    run = world.run([GROW, "40"], group)
    yield "no group of the job has a limit", not run.limits(), run.limits()
    of_group = [one for one in run.verdict["limits"] if one["scope"] == f"cgroup {group}"]
    listed = [one["limit"] for one in of_group if one["name"] == "cgroup memory"]
    yield "the group is listed as unlimited", listed == ["unlimited"], of_group
    yield from healthy(run)


@case
def a_limit_above_the_machine(world):
    group = world.groups.make("memory", "/vast", limit_in_bytes=1 << 50)
    run = world.run([GROW, "40"], group)
    names = [one["name"] for one in run.verdict["limits"] if one["name"] in ("cgroup memory", "memory and swap")]
    yield "the machine's memory is met first", names[0] == "memory and swap", names
    yield from healthy(run)


@case
def a_strangers_pids_group_of_the_same_path(world):
    group = world.groups.make("memory", "/same", limit_in_bytes=300 * MIB)
    world.groups.make("pids", "/same", max=3)
    beside = world.groups.make("pids", "/beside", max=50)
    run = world.run([GROW, "40"], group, pids=beside)
    limits = {one["scope"]: one["limit"] for one in run.limits("cgroup tasks")}
    yield "the job's own is listed", limits.get(f"cgroup {beside}") == 50, limits
    yield "the stranger's is not", f"cgroup {group}" not in limits, limits


@case
def a_container_sees_its_own_group_at_the_top(world):
    group = world.groups.make("memory", "/container", limit_in_bytes=300 * MIB)
    mount = f"mount -t tmpfs none {ROOT} && mkdir {ROOT}/memory && mount -t cgroup -o memory none {ROOT}/memory"
    within = ["unshare", "--cgroup", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    run = world.run([GROW, "100"], group, within=within)
    limits = [(one["scope"], one["limit"]) for one in run.limits()]
    yield "its limit is the limit of `/`", limits == [("cgroup /", 300 * MIB)], limits
    yield from healthy(run)


@case
def a_container_below_the_hosts_mount(world):
    group = world.groups.make("memory", "/host", limit_in_bytes=300 * MIB)
    run = world.run([GROW, "100"], group, within=["unshare", "--cgroup", "--mount"])
    limits = [(one["scope"], one["limit"]) for one in run.limits()]
    yield "its group is found below the mount", limits == [(f"cgroup {group}", 300 * MIB)], limits
    yield from healthy(run)


@case
def a_container_that_is_shown_a_strangers_group(world):
    group = world.groups.make("memory", "/hidden", limit_in_bytes=300 * MIB)
    stranger = world.groups.make("memory", "/stranger", limit_in_bytes=200 * MIB)
    mount = f"mount --bind {ROOT}/memory{stranger} {ROOT}/memory"
    within = ["unshare", "--cgroup", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    run = world.run([GROW, "100"], group, within=within)
    groups = [one for one in run.verdict["limits"] if one["name"] == "cgroup memory"]
    yield "the stranger's is not taken for its own", not groups, groups
    said = [text for text in run.verdict["not_seen"] if "memory cgroup" in text]
    yield "the report says that the group is not seen", len(said) == 1, run.verdict["not_seen"]


class World:
    def __init__(self, ullage, folder, groups):
        self.ullage, self.top, self.groups, self.folder = ullage, folder, groups, folder

    def run(self, job, memory, **more):
        return Run(self.ullage, self.folder, job, memory, **more)

    def kills(self, group):
        with open(f"{ROOT}/memory{group}/memory.oom_control") as file:
            return int(dict(line.split() for line in file)["oom_kill"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--only", nargs="*", default=[], help="cases whose name contains a WORD")
    arguments = parser.parse_args()
    if os.geteuid() != 0 or not os.path.exists(f"{ROOT}/memory/memory.limit_in_bytes"):
        print("needs root and a machine with cgroup v1", file=sys.stderr)
        return 2
    passed = failed = 0
    # On a disk, and for nobody to read: page cache needs one.
    home = tempfile.mkdtemp(prefix="ullage-cgroup-", dir="/var/tmp")
    os.chmod(home, 0o755)
    ullage = shutil.copy(os.path.realpath(arguments.ullage), home)
    groups = Groups()
    try:
        for function in CASES:
            if arguments.only and not any(word in function.__name__ for word in arguments.only):
                continue
            folder = tempfile.mkdtemp(dir=home)
            os.chmod(folder, 0o777)
            try:
                checks = list(function(World(ullage, folder, groups)))
            except Exception as error:  # the next case must run whatever this one met
                checks = [("ran to its end", False, f"{type(error).__name__}: {error}")]
            wrong = [check for check in checks if not check[1]]
            passed, failed = passed + (not wrong and bool(checks)), failed + bool(wrong or not checks)
            print(f"{'FAILED' if wrong else 'passed'}  {function.__name__.replace('_', ' ')}: {len(checks)} checks")
            for what, _, detail in wrong:
                print(f"        NOT {what}: {detail}")
            shutil.rmtree(folder)
    finally:
        groups.remove()
        shutil.rmtree(home)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
