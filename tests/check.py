#!/usr/bin/env python3
"""`ullage check` on this machine as it is, and with one thing at a time made tight: is that thing named?

    sudo tests/check.py --ullage PATH [--python PYTHON] [--only WORD] [--system-wide]

Each case lowers one limit, or leaves something behind, in a cgroup, a mount namespace or a process of its own, and asks
for one row: its state, the limit as a number, and what to do. No other row may become worse. Prints a row a case
with the seconds that it took; fails where a row is wrong, the status is not 0, or an answer took 2 s. Settings of the
whole machine are shown by a file that is mounted over them; with --system-wide they are really set, and put back.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = os.path.join(os.path.dirname(HERE), "scenarios")
sys.path.insert(0, SCENARIOS)

import surroundings  # noqa: E402
import watched  # noqa: E402

ENTER = os.path.join(SCENARIOS, "enter.py")
PLAIN = "/usr/bin/python3"
SHM = "/dev/shm"

# Writes 1 GiB where a job would, and is killed before it can remove it.
SEGMENT = """
import os, signal
path = "/dev/shm/torch_%d_1_0" % os.getpid()
with open(path, "wb") as file:
    for _ in range(1024):
        file.write(b"x" * (1 << 20))
os.kill(os.getpid(), signal.SIGKILL)
"""
SHARED_MEMORY = """
import os, signal
from multiprocessing import resource_tracker, shared_memory
kept = shared_memory.SharedMemory(create=True, size=1 << 30)
kept.buf[::4096] = b"x" * (1 << 18)
os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""
SYSTEM_V = """
import ctypes, os, signal
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
ctypes.memset(libc.shmat(libc.shmget(0, 1 << 30, 0o1600), None, 0), 1, 1 << 30)
os.kill(os.getpid(), signal.SIGKILL)
"""
NAMELESS = "open('/dev/shm/result.bin', 'wb').write(b'x' * (600 << 20))"
FILL = "open('/dev/shm/keep.bin', 'wb').write(b'x' * (60 << 20))"


def shm(options):
    return {"tmpfs": [{"path": SHM, "options": options}]}


def first(program, **more):
    return {"tmpfs": [{"path": SHM, "options": "size=2g,mode=1777"}], "first": [PLAIN, "-c", program], **more}


# What is done; the row that tells it, its state and its limit (none: any), and a word of what to do.
CASES = [
    ("mappings", {"sysctl": ("vm.max_map_count", 60_000)}, "vm.max_map_count", "warning", 60_000, "sysctl -w"),
    ("mappings, plenty", {"sysctl": ("vm.max_map_count", 1_048_576)}, "vm.max_map_count", "fine", 1_048_576, ""),
    ("strict overcommit", {"sysctl": ("vm.overcommit_memory", 2)}, "vm.overcommit_memory", "warning", None, "=0"),
    ("open files, soft", {"limits": {"nofile": (256, 20_000)}}, "ulimit -n", "warning", 256, "ulimit -n $(ulimit -Hn)"),
    ("open files, hard too", {"limits": {"nofile": 512}}, "ulimit -n", "warning", 512, "prlimit --pid $$ --nofile="),
    ("address space", {"limits": {"as": 700 << 20}}, "ulimit -v", "bad", 700 << 20, "--as=unlimited"),
    ("address space, more", {"limits": {"as": 32 << 30}}, "ulimit -v", "warning", 32 << 30, "--as=unlimited"),
    (
        "processes of a user",
        {"limits": {"nproc": 64}, "user": surroundings.ANOTHER_USER},
        "ulimit -u",
        "warning",
        64,
        "--nproc=unlimited",
    ),
    ("processes, as root", {"limits": {"nproc": 64}}, "ulimit -u", "warning", 64, "--nproc=unlimited"),
    ("locked memory", {"limits": {"memlock": 65_536}}, "ulimit -l", "warning", 65_536, "--memlock=unlimited"),
    ("pids.max", {"cgroup": ("pids", 500)}, "cgroup pids", "warning", 500, "OMP_NUM_THREADS=1"),
    ("pids.max, hardly any", {"cgroup": ("pids", 12)}, "cgroup pids", "bad", 12, "OMP_NUM_THREADS=1"),
    ("cgroup memory", {"cgroup": ("memory", 2 << 30)}, "cgroup memory", "warning", 2 << 30, "--memory-max"),
    (
        "cgroup memory, an ancestor's",
        {"cgroup": ("memory", 2 << 30), "below": True},
        "cgroup memory",
        "warning",
        2 << 30,
        "--memory-max",
    ),
    ("cgroup memory, hardly any", {"cgroup": ("memory", 200 << 20)}, "cgroup memory", "bad", 200 << 20, ""),
    ("/dev/shm of a container", shm("size=64m"), SHM, "warning", 64 << 20, "remount,size="),
    ("/dev/shm, full", {**shm("size=60m"), "first": [PLAIN, "-c", FILL]}, SHM, "bad", 60 << 20, "remount,size="),
    ("/dev/shm, read-only", shm("ro,size=4g"), SHM, "bad", None, "remount,rw"),
    ("inodes", shm("size=4g,nr_inodes=1000"), f"{SHM} inodes", "warning", 1000, "nr_inodes="),
    ("inodes, hardly any", shm("size=4g,nr_inodes=12"), f"{SHM} inodes", "bad", 12, "nr_inodes="),
    ("1 GiB of a killed job: torch", first(SEGMENT), "orphaned shared memory", "warning", None, "check --clean"),
    ("SharedMemory", first(SHARED_MEMORY), "orphaned shared memory", "warning", None, "check --clean"),
    (
        "System V",
        first(SYSTEM_V, ipc={"shmmax": 1 << 40}),
        "orphaned shared memory",
        "warning",
        None,
        "check --clean",
    ),
    ("a file of nobody known", first(NAMELESS), "unused files in /dev/shm", "warning", None, "ls -lS"),
    ("TMPDIR that is not there", {"env": {"TMPDIR": "/nonexistent"}}, "temporary files", "bad", None, "TMPDIR=/tmp"),
    (
        "an allocator that is not there",
        {"env": {"LD_PRELOAD": "/nowhere/libjemalloc.so.2"}},
        "allocator",
        "warning",
        None,
        "unset LD_PRELOAD",
    ),
    ("a torch that leaks", {"torch": "2.5.1"}, "torch", "warning", None, "pip install -U torch"),
]
# What cannot be otherwise when that is done.
FOLLOWS = {
    # That Python is another one.
    "processes of a user": {"torch"},
    # Python itself does not start there, or its helper thread does not.
    "address space": {"python", "torch", "allocator"},
    "pids.max, hardly any": {"python", "torch", "allocator"},
    "cgroup memory, hardly any": {"python", "torch", "allocator"},
    # 2 GiB hold less than is left free otherwise.
    "1 GiB of a killed job: torch": {SHM},
    "SharedMemory": {SHM},
    "a file of nobody known": {SHM},
}
WORSE = {"fine": 0, "unknown": 1, "warning": 2, "bad": 3}


class Surroundings:
    """What one case asks for; leaving puts everything back."""

    def __init__(self, asked, system_wide):
        self.asked, self.wide = asked, system_wide
        self.cgroups, self.before = [], None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="ullage-check-")
        os.chmod(self.folder.name, 0o777)
        if "cgroup" in self.asked:
            self.cgroups = surroundings.make_cgroup(*self.asked["cgroup"], self.asked.get("below", False))
        if "sysctl" in self.asked and self.wide:
            name, value = self.asked["sysctl"]
            self.path = "/proc/sys/" + name.replace(".", "/")
            with open(self.path) as file:
                self.before = file.read()
            self.set(str(value))
        return self

    def __exit__(self, *_):
        if self.before is not None:
            self.set(self.before)
        surroundings.remove_cgroups(self.cgroups)
        self.folder.cleanup()

    def set(self, value):
        with open(self.path, "w") as file:
            file.write(value)

    def command(self, ullage, python, *options):
        entered = {name: self.asked[name] for name in ("tmpfs", "ipc", "first", "limits", "user") if name in self.asked}
        entered["cgroups"] = self.cgroups[:1]
        command = [PLAIN, "-I", "-S", ENTER, json.dumps(entered), ullage, "check", "--python", python, *options]
        if "sysctl" in self.asked and not self.wide:
            name, value = self.asked["sysctl"]
            shown = os.path.join(self.folder.name, "shown")
            with open(shown, "w") as file:
                file.write(f"{value}\n")
            over = f"mount --bind {shown} /proc/sys/{name.replace('.', '/')}"
            command = ["unshare", "-m", "sh", "-c", f'{over} && exec "$@"', "sh", *command]
        return command

    def environment(self):
        environment = {**os.environ, **self.asked.get("env", {})}
        if "torch" in self.asked:
            package = os.path.join(self.folder.name, "torch")
            os.makedirs(package, exist_ok=True)
            with open(os.path.join(package, "version.py"), "w") as file:
                file.write(f"__version__ = '{self.asked['torch']}'\n")
            environment["PYTHONPATH"] = self.folder.name
        return environment

    def ask(self, ullage, python, *options):
        """`ullage check` gives a Python a second; on a busy machine it is asked again until that was enough."""
        asked, late = [], "did not answer in time"
        watched.wait_for(lambda: asked.append(self.once(ullage, python, *options)) or late not in asked[-1][0].stdout)
        return asked[-1]

    def once(self, ullage, python, *options):
        # Another user may not enter every folder.
        command = self.command(ullage, PLAIN if "user" in self.asked else python, *options)
        # What was written before it is not ullage's time.
        start = time.monotonic()
        if "first" in self.asked:
            command = [*command[:5], PLAIN, "-c", TIMED, *command[5:]]
        done = subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        seconds = time.monotonic() - start
        if "first" in self.asked:
            text, _, told = done.stderr.rpartition("seconds ")
            done.stderr, seconds = text, float(told)
        return done, seconds


# Runs the command, and says how long it alone took.
TIMED = """
import subprocess, sys, time
start = time.monotonic()
status = subprocess.run(sys.argv[1:]).returncode
print("seconds", time.monotonic() - start, file=sys.stderr)
sys.exit(status)
"""


def rows(done):
    return json.loads(done.stdout)["checks"]


def worst(checks):
    """The worst row of each name: a limit may stand in several groups."""
    found = {}
    for row in checks:
        if row["name"] not in found or WORSE[row["state"]] > WORSE[found[row["name"]]["state"]]:
            found[row["name"]] = row
    return found


def judge(case, done, seconds, usual):
    name, _, what, state, limit, words = case
    if done.returncode != 0:
        return None, [f"status {done.returncode}: {done.stderr.strip()[-300:]}"]
    found, wrong = worst(rows(done)), []
    row = found.get(what)
    if row is None:
        return None, [f"no row {what}"]
    if row["state"] != state:
        wrong.append(f"state is {row['state']}, not {state}")
    if limit is not None and row["limit"] != limit:
        wrong.append(f"limit is {row['limit']}, not {limit}")
    if words not in row["fix"]:
        wrong.append(f"the fix {row['fix']!r} lacks {words!r}")
    if state != "fine" and not row["meaning"]:
        wrong.append("nothing says what it means")
    for other, there in found.items():
        before = usual[other]["state"] if other in usual else "fine"
        if other != what and other not in FOLLOWS.get(name, ()) and WORSE[there["state"]] > WORSE[before]:
            wrong.append(f"{other} is {there['state']} too ({there['value']})")
    return row, wrong


def as_it_is(ullage, python):
    """Figures against what Python reads for itself; the row of each name."""
    import resource

    with Surroundings({}, False) as here:
        done, seconds = here.ask(ullage, python, "--json")
    wrong = []
    if done.returncode != 0:
        return {}, seconds, [f"status {done.returncode}: {done.stderr.strip()[-300:]}"]
    found = worst(rows(done))
    with open("/proc/sys/vm/max_map_count") as file:
        true = {"vm.max_map_count": int(file.read())}
    for what, which in (("-n", "NOFILE"), ("-v", "AS"), ("-u", "NPROC"), ("-l", "MEMLOCK")):
        soft = resource.getrlimit(getattr(resource, f"RLIMIT_{which}"))[0]
        true[f"ulimit {what}"] = "unlimited" if soft == resource.RLIM_INFINITY else soft
    room = os.statvfs(SHM)
    true[SHM] = room.f_blocks * room.f_bsize or "unlimited"
    true[f"{SHM} inodes"] = room.f_files or "unlimited"
    for what, limit in true.items():
        if found.get(what, {}).get("limit") != limit:
            wrong.append(f"{what} is told to be {found.get(what, {}).get('limit')}, and is {limit}")
    return found, seconds, wrong


def on_the_screen(ullage, python):
    """The same as a person sees it; and what is wrong usage."""
    wrong = []
    with Surroundings({"limits": {"nofile": 256}}, False) as here:
        done, seconds = here.ask(ullage, python)
    for words in ("Careful", "ulimit -n: 256", "prlimit --pid $$ --nofile=", "to be careful with"):
        if words not in done.stdout:
            wrong.append(f"the screen lacks {words!r}")
    status = subprocess.run([ullage, "check", "--yes"], capture_output=True, check=False).returncode
    wrong += [f"check --yes ends with {status}, not 2"] if status != 2 else []
    with open("/dev/full", "w") as full:
        status = subprocess.run([ullage, "check"], stdout=full, stderr=subprocess.DEVNULL, check=False).returncode
    wrong += [f"a full disk at its output ends with {status}, not 125"] if status != 125 else []
    return done.returncode, seconds, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable, help="the Python whose libraries are looked at")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--system-wide", action="store_true", help="really change settings of the whole machine")
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: root is needed for mounts, cgroups and another user")
        return 0
    # Any user must be able to start it.
    with tempfile.TemporaryDirectory(prefix="ullage-check-") as folder:
        os.chmod(folder, 0o755)
        ullage = os.path.join(folder, "ullage")
        subprocess.run(["cp", os.path.abspath(args.ullage), ullage], check=True)
        return run(args, ullage)


def run(args, ullage):
    usual, seconds, wrong = as_it_is(ullage, args.python)
    told = [f"{what}: {row['value']}" for what, row in usual.items() if row["state"] != "fine"]
    results = [print_row("as it is", "", "; ".join(told) or "nothing is tight", seconds, wrong)]
    _, seconds, wrong = on_the_screen(ullage, args.python)
    results.append(print_row("on the screen", "", "", seconds, wrong))
    skipped = 0
    for case in CASES:
        name, asked = case[:2]
        if args.only not in name:
            continue
        try:
            with Surroundings(asked, args.system_wide) as here:
                done, seconds = here.ask(ullage, args.python, "--json")
        except OSError as error:
            skipped += 1
            print(f"{name:<32} skipped: {error}")
            continue
        row, wrong = judge(case, done, seconds, usual)
        results.append(print_row(name, row["state"] if row else "-", row["value"] if row else "-", seconds, wrong))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, {skipped} skipped")
    return 0 if all(results) else 1


def print_row(name, state, value, seconds, wrong):
    print(f"{'FAIL' if wrong else 'ok  '} {name:<32} {state:<8} {seconds:5.2f} s  {value}", flush=True)
    for sentence in wrong:
        print(f"         {sentence}", flush=True)
    return not wrong


if __name__ == "__main__":
    sys.exit(main())
