#!/usr/bin/env python3
"""Is a recording on the shared disk what it is here, whatever that disk, ullage and the job go through?

    fleet_copy.py --ullage PATH

Jobs under `ullage run --fleet DIR` with copies every 200 ms: that end, are killed with ullage or without, are interrupted; DIR
that is full, hung (an ext4 that `fsfreeze` stops), read-only or no folder; names that are hostile; and `ullage runs push`. A
job is compared with itself without ullage: what it prints, and its status. Full and hung disks need root, and are named where
they cannot be had. Prints how many cases ran.
"""

import argparse
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

import watched
from disks import mounted

# Says that it runs, and waits for a file; the second word is its status.
JOB = """
import os, sys, time
held = bytearray(8 << 20)
print("began", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
print("ends", flush=True)
sys.exit(int(sys.argv[2]))
"""
LAUNCHERS = re.compile("SLURM|TORCHELASTIC|RAY_|KUBERNETES|RANK|NODE_NAME|JOB_COMPLETION|ULLAGE")
PLAIN = ("began\nends\n", 3)


class Run:
    """A job under `ullage run --fleet`, or without ullage where there is no fleet."""

    def __init__(self, test, fleet, *options, home=None, environment=(), shell=()):
        test.number += 1
        self.home = home or os.path.join(test.folder, f"home{test.number}")
        self.go = os.path.join(test.folder, f"go{test.number}")
        plain = {name: value for name, value in os.environ.items() if not LAUNCHERS.search(name)}
        plain.update(ULLAGE_HOME=self.home, ULLAGE_FLEET_EVERY="200ms", ULLAGE_NO_AGENT="1", **dict(environment))
        words = [*shell, test.ullage, "run", "--fleet", fleet, *options, "--"] if fleet else []
        self.process = subprocess.Popen(
            [*words, sys.executable, test.job, self.go, "3"],
            env=plain,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.said = ""
        assert self.process.stdout.readline() == "began\n"

    def recording(self):
        """Its folder, once it is there."""
        folders = lambda: [os.path.join(self.home, name) for name in os.listdir(self.home)]  # noqa: E731
        watched.wait_for(lambda: os.path.isdir(self.home) and folders())
        (folder,) = folders()
        return folder

    def pids(self):
        """Of the job and of the copier, children of ullage."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            children = [int(pid) for pid in file.read().split()]
        copier = [pid for pid in children if "fleet-copier" in words_of(pid)]
        return [pid for pid in children if pid not in copier], copier

    def says(self, text):
        """Goes on when ullage has said it."""
        error = self.process.stderr.fileno()
        while text not in self.said and select.select([error], [], [], 300)[0] and (more := os.read(error, 65536)):
            self.said += more.decode()

    def end(self):
        """What it prints and its status; and what ullage says."""
        open(self.go, "w").close()
        out, said = self.process.communicate(timeout=120)
        return ("began\n" + out, self.process.returncode), self.said + said


class Test:
    def __init__(self, ullage, folder):
        self.ullage, self.folder, self.failed, self.cases, self.number = ullage, folder, 0, 0, 0
        self.job = os.path.join(folder, "job.py")
        with open(self.job, "w") as file:
            file.write(JOB)
        assert Run(self, None).end()[0] == PLAIN

    def check(self, what, holds, got=""):
        self.cases += 1
        print(f"{'ok  ' if holds else 'FAIL'}  {what}", flush=True)
        if not holds:
            self.failed += 1
            print(got)

    def fleet(self):
        self.number += 1
        return os.path.join(self.folder, f"fleet{self.number}")

    def ask(self, *words, environment=()):
        """Status, standard output and standard error of the command."""
        plain = {name: value for name, value in os.environ.items() if not LAUNCHERS.search(name)}
        plain.update(dict(environment))
        done = subprocess.run([self.ullage, *words], env=plain, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def items(self, folder):
        status, out, said = self.ask("export", folder, "--format", "json")
        assert status == 0, said
        return out.splitlines()

    def samples(self, folder):
        """Of a copy that is perhaps being made."""
        try:
            return sum('"sample"' in item[:12] for item in self.items(folder))
        except AssertionError:
            return 0


def words_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().split("\0")
    except OSError:
        return []


def copiers(fleet):
    """Processes that copy there."""
    pids = filter(str.isdigit, os.listdir("/proc"))
    return [int(pid) for pid in pids if {"fleet-copier", fleet} <= set(words_of(pid))]


def content(folder):
    """Files of a recording by name: bytes and time."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            found[name] = file.read(), os.stat(path).st_mtime_ns
    return found


def places(fleet):
    """Folders of recordings below it."""
    return sorted(os.path.relpath(here, fleet) for here, _, names in os.walk(fleet) if "run.json" in names)


def ends(test):
    fleet, host = test.fleet(), os.uname().nodename
    run = Run(test, fleet)
    recording = run.recording()
    place = os.path.join(fleet, f"job=-/node={host}/rank=-/attempt=0")
    test.check("live: the copy appears while the job runs", watched.wait_for(lambda: os.path.exists(f"{place}/tails.zst")))
    test.check("live: samples are added to it", watched.wait_for(lambda: test.samples(place) >= 4))
    before = test.samples(place)
    test.check("live: and more of them", watched.wait_for(lambda: test.samples(place) > before))
    test.check("live: no verdict stands there", not os.path.exists(f"{place}/verdict.json"))
    job, (copier,) = run.pids()
    with open(f"/proc/{copier}/stat") as file:
        session = file.read().rpartition(")")[2].split()[3]
    test.check("the copier has a session of its own", int(session) == copier, session)
    got, said = run.end()
    test.check("the end: the job is as without ullage", got == PLAIN, got)
    test.check("the end: nothing is said of the copy", "fleet" not in said, said)
    test.check("the end: the copy is the recording, with its times", content(place) == content(recording))
    test.check("the end: it is the only one", places(fleet) == [os.path.relpath(place, fleet)], places(fleet))
    test.check("the end: no copier is left", watched.wait_for(lambda: not copiers(fleet)), copiers(fleet))
    verdicts = [test.ask("report", folder, "--json")[1] for folder in (place, recording)]
    test.check("the end: both have one verdict", verdicts[0] == verdicts[1] != "", verdicts)
    seen = {json.loads(item).get("event", {}).get("what", {}).get("facts", {}).get("id", {}).get("pid") for item in test.items(place)}
    test.check("the copier is no process of the job", copier not in seen and set(job) <= seen, (copier, job, seen))
    with open(f"{place}/run.json") as file:
        facts = json.load(file)["machine"]["others"]
    with open("/proc/sys/kernel/random/boot_id") as file:
        test.check("run.json names the boot", facts.get("boot.id") == file.read().strip(), facts.get("boot.id"))
    clock = facts.get("clock.error_s"), facts.get("clock.synchronized")
    test.check("run.json bounds the clock", 0 <= float(clock[0]) < 17 and clock[1] in (True, False), clock)
    stat = os.stat(place).st_mode & 0o777, os.stat(f"{place}/run.json").st_mode & 0o777
    test.check("others do not read it", stat == (0o700, 0o600), stat)
    # The same job once more.
    second = Run(test, fleet)
    second.end()
    folders = [f"job=-/node={host}/rank=-/attempt={n}" for n in (0, 1)]
    test.check("a second run of the job gets the next number", places(fleet) == folders, places(fleet))
    test.check("and leaves the first alone", content(place) == content(recording))


def named(test):
    torchrun = {"TORCHELASTIC_RUN_ID": "exp7", "RANK": "5", "TORCHELASTIC_RESTART_COUNT": "2"}
    hostile = {"SLURM_JOB_ID": "../../x=%\n1", "SLURMD_NODENAME": "/n 1"}
    for environment, place in (
        (torchrun, f"job=exp7/node={os.uname().nodename}/rank=5/attempt=2"),
        (hostile, "job=..%2F..%2Fx%3D%25%0A1/node=%2Fn 1/rank=-/attempt=0"),
        ({"SLURM_JOB_ID": "j" * 200, "SLURMD_NODENAME": "n"}, f"job={'j' * 200}/node=n/rank=-/attempt=0"),
    ):
        fleet = test.fleet()
        got, said = Run(test, fleet, environment=environment).end()
        test.check(f"named: {place[:40]}", places(fleet) == [place] and got == PLAIN, (places(fleet), got, said))


def killed(test):
    fleet = test.fleet()
    run = Run(test, fleet)
    recording = run.recording()
    # The copier stands while ullage goes on recording: what it copies then comes after the kill.
    watched.wait_for(lambda: places(fleet))
    job, (copier,) = run.pids()
    os.kill(copier, signal.SIGSTOP)
    watched.wait_for(lambda: test.samples(recording) >= 5)
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    os.kill(copier, signal.SIGCONT)
    test.check("ullage killed: the copier makes the last copy and ends", watched.wait_for(lambda: not copiers(fleet)))
    place = os.path.join(fleet, *places(fleet))
    lines = [test.items(folder) for folder in (place, recording)]
    test.check("ullage killed: the copy has all that was recorded", lines[0] == lines[1] and len(lines[0]) > 5, list(map(len, lines)))
    test.check("ullage killed: the job runs on", all(os.path.exists(f"/proc/{pid}") for pid in job), job)
    run.end()
    # Everything on the node at once, as by the end of its container.
    fleet = test.fleet()
    run = Run(test, fleet)
    recording = run.recording()
    # In the first second samples come faster than copies.
    watched.wait_for(lambda: places(fleet) and test.samples(os.path.join(fleet, *places(fleet))) >= 12)
    job, copier = run.pids()
    for pid in (run.process.pid, *copier, *job):
        os.kill(pid, signal.SIGKILL)
    run.process.wait()
    place = os.path.join(fleet, *places(fleet))
    got, whole = test.items(place), test.items(recording)
    # Here a copy is made each 200 ms, and a sample each second: one, and the one in between.
    test.check("all killed: at most the last interval is lost", set(got) <= set(whole) and len(whole) - len(got) <= 3, (len(got), len(whole)))
    home = {"ULLAGE_HOME": run.home}
    status, _, said = test.ask("runs", "push", fleet, environment=home)
    test.check("pushed: what a killed ullage left, into the folder that it has", status == 0 and len(places(fleet)) == 1, said)
    test.check("pushed: all of it", test.items(place) == whole, len(whole))
    status, out, said = test.ask("report", place, "--json")
    test.check("the verdict of a copy without an end", status == 0 and json.loads(out)["outcome"]["kind"] == "unknown", out[:300] + said)
    test.check("a report leaves a copy as it is", os.path.exists(f"{place}/tails.zst"), os.listdir(place))


def pushed(test):
    """As an epilog does it: all recordings of its job, and no others."""
    home = os.path.join(test.folder, "epilog")
    for environment in ({"SLURM_JOB_ID": "7"}, {"SLURM_JOB_ID": "8"}, {"SLURM_JOB_ID": "7", "SLURM_PROCID": "1"}):
        environment = {"SLURMD_NODENAME": "n1", "ULLAGE_HOME": home, "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", **environment}
        test.ask("run", "-q", "--", "true", environment=environment)
    fleet = test.fleet()
    ours = {"SLURM_JOB_ID": "7", "ULLAGE_HOME": home}
    wanted = ["job=7/node=n1/rank=-/attempt=0", "job=7/node=n1/rank=1/attempt=0"]
    for time_ in ("first", "second"):
        status, _, said = test.ask("runs", "push", fleet, environment=ours)
        test.check(f"epilog, {time_} time: the recordings of its job", status == 0 and places(fleet) == wanted, (places(fleet), said))
    status, _, said = test.ask("runs", "push", fleet, environment={**ours, "SLURM_JOB_ID": "9"})
    test.check("epilog of a job without recordings: it says so", status == 125 and "no recording of job 9" in said, said)
    status, _, said = test.ask("runs", "push", os.path.join(home, os.listdir(home)[0]), "/dev/null/x")
    test.check("a push to nowhere fails", status == 125 and "/dev/null/x" in said, said)


def interrupted(test):
    fleet = test.fleet()
    run = Run(test, fleet)
    recording = run.recording()
    watched.wait_for(lambda: places(fleet))
    os.killpg(run.process.pid, signal.SIGINT)
    _, said = run.end()
    test.check("Ctrl-C: the status is that of the job", run.process.returncode == 130, run.process.returncode)
    place = os.path.join(fleet, *places(fleet))
    test.check("Ctrl-C: the copy is the recording", content(place) == content(recording), said)


def first_process(test):
    """Of a container: orphans come to ullage, and the kernel kills the copier when ullage ends."""
    fleet = test.fleet()
    run = Run(test, fleet, shell=["unshare", "--pid", "--fork", "--mount-proc"])
    recording = run.recording()
    watched.wait_for(lambda: places(fleet))
    got, said = run.end()
    test.check("first process: the job is as without ullage", got == PLAIN, (got, said))
    place = os.path.join(fleet, *places(fleet))
    test.check("first process: the copy is the recording", content(place) == content(recording), said)
    comms = {json.loads(item).get("event", {}).get("what", {}).get("facts", {}).get("comm") for item in test.items(place)}
    test.check("first process: the copier is no process of the job", "ullage" not in comms, comms)


def refused(test):
    file = os.path.join(test.folder, "file")
    open(file, "w").close()
    for what, fleet in (("a file is in the way", f"{file}/fleet"), ("it cannot be made", "/proc/fleet")):
        run = Run(test, fleet)
        recording = run.recording()
        run.says("nothing is copied to")
        got, said = run.end()
        noted = said.count(f"nothing is copied to {fleet} (--fleet)")
        test.check(f"{what}: one note at the start, and one at the end", noted == 1 and said.count("the last part") == 1, said)
        test.check(f"{what}: the job and its recording are as ever", got == PLAIN and "verdict.json" in os.listdir(recording), got)
    run = Run(test, test.fleet(), home="/dev/null/home")
    got, said = run.end()
    test.check("nothing is recorded: it says that nothing is copied", "(--fleet): nothing is recorded" in said and got == PLAIN, said)


def full(test):
    with mounted(os.path.join(test.folder, "full"), "-t", "tmpfs", "-o", "size=64k", "tmpfs") as disk:
        if disk is None:
            return print("a tmpfs cannot be mounted here: no full disk was tried")
        with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb", buffering=0) as filler:
            while filler.write(b"x" * 4096):
                pass
        run = Run(test, disk)
        recording = run.recording()
        run.says("nothing is copied to")
        # It is refused several times while the job runs.
        time.sleep(1)
        begun = time.monotonic()
        got, said = run.end()
        test.check("full: the job is as without ullage, and ends at once", got == PLAIN and time.monotonic() - begun < 10, got)
        test.check("full: it is said once while the job runs", said.count("nothing is copied to") == 1 and "No space left" in said, said)
        test.check("full: and where the recording lies", f"it lies in {recording}" in said, said)
        # There is room again while the copier still tries.
        os.unlink(os.path.join(disk, "filler"))
        test.check("full: the copier makes the copy once there is room", watched.wait_for(lambda: not copiers(disk)))
        place = os.path.join(disk, *places(disk))
        test.check("full: it is the recording", content(place) == content(recording))


def read_only(test):
    with mounted(os.path.join(test.folder, "read-only"), "-t", "tmpfs", "-o", "size=64k,ro", "tmpfs") as disk:
        if disk is None:
            return print("a tmpfs cannot be mounted here: no read-only disk was tried")
        run = Run(test, disk)
        run.recording()
        got, said = run.end()
        test.check("read-only: a note, and the job as without ullage", "Read-only file system" in said and got == PLAIN, (got, said))
        test.check("read-only: no copier is left", watched.wait_for(lambda: not copiers(disk)))


def hung(test):
    image = os.path.join(test.folder, "image")
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    with mounted(os.path.join(test.folder, "hung"), "-o", "loop", image) as disk:
        if disk is None:
            return print("a loop device cannot be had here: no hung disk was tried")
        for when in ("from the start", "while the job runs"):
            fleet = os.path.join(disk, when.replace(" ", "-"))
            run = None
            if when != "from the start":
                run = Run(test, fleet)
                watched.wait_for(lambda fleet=fleet: places(fleet))
            frozen = subprocess.run(["fsfreeze", "--freeze", disk]).returncode == 0
            if not frozen:
                return print("fsfreeze does not work here: no hung disk was tried")
            thawed = False
            try:
                # A descriptor that ullage's parent waits on must not stay open in the copier.
                run = run or Run(test, fleet, shell=["bash", "-c", 'exec 9>&1; exec "$0" "$@"'])
                recording = run.recording()
                samples = test.samples(recording)
                watched.wait_for(lambda recording=recording, samples=samples: test.samples(recording) > samples + 2)
                begun = time.monotonic()
                got, said = run.end()
                took = time.monotonic() - begun
                test.check(f"hung {when}: the job is as without ullage", got == PLAIN, got)
                test.check(f"hung {when}: ullage ends within seconds", took < 10, took)
                test.check(f"hung {when}: it says where the recording lies", f"it lies in {recording}" in said, said)
                test.check(f"hung {when}: the copier is left to go on", len(copiers(fleet)) == 1, copiers(fleet))
                subprocess.run(["fsfreeze", "--unfreeze", disk], check=True)
                thawed = True
                test.check(f"hung {when}: it makes the copy once the disk works", watched.wait_for(lambda fleet=fleet: not copiers(fleet)))
                place = os.path.join(fleet, *places(fleet))
                test.check(f"hung {when}: which is the recording", content(place) == content(recording))
            finally:
                if not thawed:
                    subprocess.run(["fsfreeze", "--unfreeze", disk], check=True)


def main():
    # Who was started in the background of a script ignores it, and so would the jobs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(args.ullage), folder)
        disks = [first_process, full, read_only, hung] if os.geteuid() == 0 else []
        for part in (ends, named, killed, pushed, interrupted, refused, *disks):
            if not args.only or part.__name__ in args.only:
                part(test)
        if not disks:
            print("only root mounts disks and makes containers: none was tried")
    print(f"{test.cases} cases ran, {test.failed} failed")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
