#!/usr/bin/env python3
"""Makes two machines that differ in one thing, runs the same job on both, and asks `ullage compare` what differs.

    tests/two_machines.py --ullage target/release/ullage --python PYTHON-WITH-TORCH [--other PYTHON] [--only WORD]

Every pair is two real recordings. Prints a row a pair with the place of the true difference, the count of first
places and of top threes, and ends with 1 where fewer than 80 % stand first or fewer than 95 % among the first three,
or where two equal machines are said to differ. What this machine cannot make is listed with the reason. Settings of
the whole machine (vm.max_map_count, vm.overcommit_memory, swap) are changed, and put back, with --system-wide only.
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = os.path.join(os.path.dirname(HERE), "scenarios")
sys.path.insert(0, SCENARIOS)

import surroundings  # noqa: E402
from cases import CAUSES  # noqa: E402

ENTER = os.path.join(SCENARIOS, "enter.py")
PLAIN = "/usr/bin/python3"
JOBS = os.path.join(HERE, "two_machines_jobs.py")
NO_HUGE_PAGES = "import ctypes,os,sys; ctypes.CDLL(None).prctl(41,1,0,0,0); os.execvp(sys.argv[1],sys.argv[1:])"


def library(*names):
    """A library by its name, where the loader finds one."""
    for name in names:
        for folder in (
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib64",
            "/usr/local/lib",
            os.environ.get("ULLAGE_TEST_LIBS", ""),
        ):
            found = sorted(glob.glob(os.path.join(folder, name))) if folder else []
            if found:
                return found[0]
    return None


def pairs(python, other):
    """name, facts of which one must come first, job, what is good, what is bad."""
    jobs = f"{CAUSES}/{{}}".format
    batches = [python, jobs("nofile-exhausted-shared-tensors/scenario/batches.py"), "keep"]
    product = [python, JOBS, "product"]
    memory = [PLAIN, jobs("memcg-oom-kill/scenario/grow.py"), "300"]
    load = [python, jobs("spawn-forkserver-full-copy/scenario/load.py")]
    matrix = [python, f"{SCENARIOS}/matrix/job.py", "--start-method", "spawn", "--tensors", "1500", "--strategy"]

    def shm(options):
        return {"tmpfs": [{"path": "/dev/shm", "options": options}]}

    yield (
        "size of /dev/shm",
        {"shm.size"},
        [python, jobs("shm-full-bytes/scenario/batches.py")],
        shm("size=256m"),
        shm("size=8m"),
    )
    yield (
        "inodes of /dev/shm",
        {"shm.inodes"},
        [PLAIN, jobs("tmpfs-inodes/scenario/segments.py")],
        *(shm(f"size=1g,nr_inodes={n}") for n in (1000, 50)),
    )
    yield "open files", {"limit.nofile.soft"}, batches, {"limits": {"nofile": 4096}}, {"limits": {"nofile": 256}}
    yield (
        "address space",
        {"limit.as.soft"},
        [PLAIN, jobs("rlimit-as-virtual-memory/scenario/buffers.py"), "2000"],
        {},
        {"limits": {"as": 700 << 20}},
    )
    yield (
        "processes of a user",
        {"limit.nproc.soft"},
        [PLAIN, jobs("pids-limit-cgroup/scenario/threads.py"), "60"],
        *({"limits": {"nproc": n}, "user": surroundings.ANOTHER_USER} for n in (400, 40)),
    )
    yield (
        "cgroup memory, an ancestor's",
        {"cgroup.memory.max"},
        memory,
        *({"cgroup": ("memory", n << 20), "below": True} for n in (900, 200)),
    )
    yield (
        "pids.max",
        {"cgroup.pids.max"},
        [PLAIN, jobs("pids-limit-cgroup/scenario/threads.py"), "60"],
        *({"cgroup": ("pids", n)} for n in (400, 40)),
    )
    yield (
        "temporary files",
        {"tmp.size"},
        [PLAIN, jobs("disk-full-tmp/scenario/files.py")],
        *(
            {"tmpfs": [{"path": "{scratch}/t", "options": f"size={n}m,mode=1777"}], "env": {"TMPDIR": "{scratch}/t"}}
            for n in (256, 16)
        ),
    )
    yield (
        "start method",
        {"job.start_method"},
        load,
        {"args": ["fork", "list", "1000000", "3"]},
        {"args": ["spawn", "list", "1000000", "3"]},
    )
    yield (
        "sharing strategy",
        {"job.sharing_strategy"},
        matrix,
        *({"args": [strategy], "limits": {"nofile": 1024}} for strategy in ("file_system", "file_descriptor")),
    )
    yield "malloc's arenas", {"env.MALLOC_ARENA_MAX"}, [PLAIN, JOBS, "arenas"], {"env": {"MALLOC_ARENA_MAX": "1"}}, {}
    allocator = library("libjemalloc.so*", "libtcmalloc*.so*", "libmimalloc.so*")
    preload = {"env": {"LD_PRELOAD": allocator}} if allocator else "no jemalloc, tcmalloc or mimalloc here"
    yield "preloaded allocator", {"env.LD_PRELOAD", "loaded.allocator"}, [python, JOBS, "arenas"], {}, preload
    openmp = library("libiomp5.so", "libomp.so*", "libgomp.so.1")
    openmp = {"env": {"LD_PRELOAD": openmp}} if openmp else "no other OpenMP here"
    yield "OpenMP build", {"loaded.openmp", "env.LD_PRELOAD"}, product, {}, openmp
    yield (
        "OpenMP threads",
        {"env.OMP_NUM_THREADS"},
        product,
        {"env": {"OMP_NUM_THREADS": "1"}},
        {"env": {"OMP_NUM_THREADS": "12"}},
    )
    cores = {"before": ["taskset", "-c", "0"]} if len(os.sched_getaffinity(0)) > 1 else "one core only"
    yield "cores", {"cores.allowed"}, product, cores, {}
    no_huge = {"before": [PLAIN, "-c", NO_HUGE_PAGES]}
    with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
        enabled = "[never]" not in file.read()
    yield "huge pages", {"thp.process"}, [PLAIN, JOBS, "huge"], no_huge if enabled else "they are off here", {}
    newer = {"python": other} if other else "give another torch with --other"
    yield "torch", {"torch.version"}, product, {}, newer
    # What belongs to the whole machine is only made tighter than it is, and so that nobody else meets it.
    yield (
        "vm.max_map_count",
        {"sysctl.vm.max_map_count"},
        [python, jobs("max-map-count-exhausted/scenario/keep.py"), "40000"],
        {"whole": True},
        {"whole": True, "sysctl": {"vm.max_map_count": 30_000}},
    )
    yield (
        "overcommit",
        {"sysctl.vm.overcommit_memory"},
        [PLAIN, JOBS, "promises"],
        {"whole": True},
        {"whole": True, "sysctl": {"vm.overcommit_ratio": 1000, "vm.overcommit_memory": 2}},
    )
    # Other cgroups get no swap of it: at a swappiness of 0 their limits kill as before.
    small = {"whole": True, "cgroup": ("memory", 100 << 20), "sysctl": {"vm.swappiness": 0}}
    yield (
        "swap",
        {"swap.total"},
        [PLAIN, jobs("memcg-oom-kill/scenario/grow.py"), "160"],
        {**small, "swap": 256 << 20},
        small,
    )


def put(path, value):
    with open(path, "w") as file:
        file.write(str(value))


class Machine:
    """Surroundings of one run; leaving puts everything back."""

    def __init__(self, setup, scratch):
        self.setup, self.scratch, self.cgroups, self.before, self.swap = setup, scratch, [], [], None

    def __enter__(self):
        if "cgroup" in self.setup:
            self.cgroups = surroundings.make_cgroup(*self.setup["cgroup"], self.setup.get("below", False))
        try:
            self.of_the_machine()
        except OSError:
            self.__exit__()
            raise
        return self

    def of_the_machine(self):
        for name, value in self.setup.get("sysctl", {}).items():
            path = "/proc/sys/" + name.replace(".", "/")
            with open(path) as file:
                self.before.append((path, file.read()))
            put(path, value)
        own = f"{self.cgroups[0]}/memory.swappiness" if self.cgroups else ""
        if os.path.exists(own):
            put(own, 60)
        if "swap" in self.setup:
            made = os.path.join(self.scratch, "swap")
            with open(made, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, self.setup["swap"])
            os.chmod(made, 0o600)
            for command in (["mkswap", made], ["swapon", made]):
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    raise OSError(f"{command[0]}: {done.stderr.strip()}")
            self.swap = made

    def __exit__(self, *_):
        if self.swap:
            subprocess.run(["swapoff", self.swap], check=True)
            os.unlink(self.swap)
        for path, value in reversed(self.before):
            put(path, value)
        surroundings.remove_cgroups(self.cgroups)

    def fill(self, text):
        return text.replace("{scratch}", self.scratch)

    def run(self, ullage, job, record):
        if "python" in self.setup:
            job = [self.setup["python"], *job[1:]]
        job = [self.fill(word) for word in [*job, *self.setup.get("args", [])]]
        tmpfs = [{**mount, "path": self.fill(mount["path"])} for mount in self.setup.get("tmpfs", [])]
        entered = {"tmpfs": tmpfs, "cgroups": self.cgroups[:1], "limits": self.setup.get("limits", {})}
        entered["user"] = self.setup.get("user")
        command = [ullage, "run", "-q", "--interval", "200ms", "--record", record, "--", *job]
        command = [*self.setup.get("before", []), *command]
        if any(entered.values()):
            command = [PLAIN, "-I", "-S", ENTER, json.dumps(entered), *command]
        added = {name: self.fill(value) for name, value in self.setup.get("env", {}).items()}
        environment = {**os.environ, "HOME": self.scratch, "ULLAGE_HOME": self.scratch + "/home", **added}
        for name in ("MALLOC_ARENA_MAX", "OMP_NUM_THREADS", "LD_PRELOAD"):
            if name not in added:
                environment.pop(name, None)
        with open(record + ".log", "wb") as log:
            done = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.scratch,
                timeout=240,
            )
        return done.returncode


def compared(ullage, job, good, bad):
    """What compare says of two runs of a job, and how both ended."""
    scratch = surroundings.scratch_folder()
    try:
        # Another user must be able to start it, and to write beside it.
        mine = shutil.copy(ullage, scratch)
        statuses = []
        for name, setup in (("good", good), ("bad", bad)):
            with Machine(setup, scratch) as machine:
                statuses.append(machine.run(mine, job, os.path.join(scratch, name)))
        command = [ullage, "compare", "--json", os.path.join(scratch, "good"), os.path.join(scratch, "bad")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            with open(os.path.join(scratch, "bad.log"), errors="replace") as log:
                return None, [done.stderr.strip(), log.read()[-600:]]
        return json.loads(done.stdout)["others"][0], statuses
    finally:
        surroundings.remove_folder(scratch)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", required=True, help="a Python with torch")
    parser.add_argument("--other", help="a Python with another torch")
    parser.add_argument("--only", default="", help="pairs whose name holds this")
    parser.add_argument("--system-wide", action="store_true", help="also change settings of the whole machine")
    parser.add_argument("--json", help="write every comparison there")
    arguments = parser.parse_args()
    ullage = os.path.abspath(arguments.ullage)
    places, skipped, everything, wrong = [], [], {}, 0
    print(f"{'difference':<30} {'place':>5}  {'strength':<9} {'first of the list':<26} ended")
    for name, truth, job, good, bad in pairs(arguments.python, arguments.other):
        if arguments.only not in name:
            continue
        reason = next((side for side in (good, bad) if isinstance(side, str)), None)
        if reason is None and "whole" in good and not arguments.system_wide:
            reason = "it would change the whole machine (--system-wide)"
        try:
            result, statuses = (None, None) if reason else compared(ullage, job, good, bad)
        except OSError as error:
            reason = str(error)
        if reason:
            skipped.append((name, reason))
            continue
        if result is None:
            wrong += 1
            print(f"{name:<30}     -  {' / '.join(statuses)}")
            continue
        everything[name] = result
        facts = [one["fact"] for one in result["differences"]]
        place = next((at for at, fact in enumerate(facts, 1) if fact in truth), None)
        places.append(place)
        strength = result["differences"][place - 1]["strength"] if place else "-"
        first = facts[0] if facts else "none"
        print(f"{name:<30} {place or '-':>5}  {strength:<9} {first:<26} {statuses[0]} / {statuses[1]}", flush=True)
    if not arguments.only or arguments.only in "nothing at all":
        same = [PLAIN, JOBS, "arenas"]
        result, statuses = compared(ullage, same, {}, {})
        found = [one["fact"] for one in result["differences"]] if result else ["no answer"]
        everything["nothing at all"] = result
        wrong += bool(found)
        print(f"{'nothing at all':<30} {'':>5}  {'':<9} {', '.join(found) or 'none':<26} {statuses[0]} / {statuses[1]}")
    for name, reason in skipped:
        print(f"{name:<30} not made: {reason}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(everything, file, indent=1)
    count = len(places)
    first = sum(place == 1 for place in places)
    three = sum(place is not None and place <= 3 for place in places)
    print(f"{count} pairs: {first} first, {three} among the first three; {len(skipped)} not made, {wrong} wrong")
    return 0 if count and not wrong and first >= 0.8 * count and three >= 0.95 * count else 1


if __name__ == "__main__":
    sys.exit(main())
