#!/usr/bin/env python3
"""Every shared byte: real jobs whose segments are known, watched with default options by a user without privilege.

Each case runs in a mount namespace with a /dev/shm of its own, so that what ullage tells can be compared with what the
tmpfs says is in use. Checked, for each: the bytes of each kind are the truth; every byte has a maker or is called an
orphan; the maker is the true one; what is told of /dev/shm adds up to what statvfs calls used, to a page a file; and
what the job leaves behind is listed when it is over.

    sudo python benches/segments.py --ullage target/release/ullage --python .venv/bin/python [--only CASE ...]
        [--user 65534] [--seconds 5]

The peer is du(1), which sees what has a name: printed as the share of the true bytes that it finds.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "segments_job.py")
PAGE = 4096
CASES = """loader-file-system loader-file-descriptor shared-tensors python-shared-memory python-array memfds mapped-only
    deleted-files system-v killed-creator killed-at-once arena many""".split()
LEFT = {"killed-creator": 3, "killed-at-once": 2}
# A reading of 60,000 segments costs a fifth of a second of CPU: the budget has to save up for it.
STILL_S = {"many": 120.0}


class Case:
    """One run and what is wrong with what was told of it."""

    def __init__(self, name, args):
        self.name, self.args, self.problems = name, args, []
        self.folder = tempfile.mkdtemp(prefix="ullage-segments-")
        os.chmod(self.folder, 0o777)

    def wrong(self, text):
        self.problems.append(text)

    def run(self):
        record, verdict, truth = (f"{self.folder}/{name}" for name in ("run", "verdict.json", "truth.json"))
        command = [self.args.ullage, "run", "-q", "--record", record, "--json", verdict, "--"]
        command += [self.args.python, JOB, self.name, truth, str(STILL_S.get(self.name, self.args.seconds))]
        user = self.args.user

        def become():
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        env = dict(os.environ, HOME=self.folder, TMPDIR=self.folder, ULLAGE_HOME=self.folder)
        with open(f"{self.folder}/out", "wb") as out:
            try:
                done = subprocess.run(
                    command, env=env, preexec_fn=become, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=300
                )
            except subprocess.TimeoutExpired:
                self.wrong("it did not end within 300 s")
                return
        with open(f"{self.folder}/out") as out:
            said = out.read()
        if done.returncode != 0:
            self.wrong(f"status {done.returncode}: {said[-400:]}")
            return
        with open(truth) as file:
            self.truth = json.load(file)
        with open(verdict) as file:
            self.verdict = json.load(file)
        with open(f"{record}/run.json") as file:
            started = json.load(file)["started_unix"]
        done = subprocess.run(
            [self.args.ullage, "export", record, "--format", "json"], capture_output=True, text=True, check=True
        )
        samples = [json.loads(line).get("sample") for line in done.stdout.splitlines()]
        # What ullage knows when the job has held still: the last reading, older than that where nothing moved since.
        known = [
            sample
            for sample in samples
            if sample and "known" in sample["segments"] and started + sample["at"] / 1e9 < self.truth["end"]
        ]
        if not known:
            self.wrong("no reading was made")
            return
        self.judge(known[-1])

    def judge(self, sample):
        rows = sample["segments"]["known"]
        shm = next(place for place in sample["filesystems"] if place["used_for"] == "shm")
        self.rows, self.count = len(rows), sum(row["count"] for row in rows)
        told = {}
        for row in rows:
            if "known" not in row["allocated"]:
                self.wrong(f"{row['name']}: bytes not told: {row['allocated']}")
            told.setdefault(row["kind"], 0)
            told[row["kind"]] += row["allocated"].get("known", 0)
        true = {}
        for part in self.truth["truth"]:
            true[part["kind"]] = true.get(part["kind"], 0) + part["bytes"]
        files = {kind: sum(part["count"] for part in self.truth["truth"] if part["kind"] == kind) for kind in true}
        for kind in sorted(set(told) | set(true)):
            # A semaphore of multiprocessing is a page, and every library may make one.
            slack = PAGE * files.get(kind, 0) + (64 * PAGE if kind == "posix-shm" else 0)
            if abs(told.get(kind, 0) - true.get(kind, 0)) > slack:
                self.wrong(f"{kind}: told {told.get(kind, 0)}, true {true.get(kind, 0)}")
        self.bytes = sum(told.values())
        self.makers(rows)
        # The tmpfs's own figure, read by the job before and after the reading, and by ullage with it.
        inside = [row for row in rows if row["device"] == shm["device"]]
        self.sum = sum(row["allocated"].get("known", 0) for row in inside)
        self.used = self.truth["used"]
        for used in [*self.used, shm["used"]]:
            if abs(self.sum - used) > PAGE * sum(row["count"] for row in inside):
                self.wrong(f"segments in /dev/shm hold {self.sum}, statvfs says {used}")
        left = self.verdict["segments"]["left_behind"]
        if left.get("count") != LEFT.get(self.name, 0):
            self.wrong(f"left behind: told {left.get('count', left)}, true {LEFT.get(self.name, 0)}")
        self.cost = self.verdict["cost"]
        self.size = os.path.getsize(f"{self.folder}/verdict.json")
        self.recorded = sum(
            os.path.getsize(f"{self.folder}/run/{name}")
            for name in os.listdir(f"{self.folder}/run")
            if name.startswith("segments")
        )

    def makers(self, rows):
        """Bytes with a maker or called orphan, and bytes with the true maker."""
        by_pid, claimed, total = {}, 0, 0
        for row in rows:
            size = row["allocated"].get("known", 0)
            total += size
            creator = row["creator"].get("known")
            pid = None
            if creator:
                who = creator["who"]
                pid = who["process"]["pid"] if "process" in who else who["gone"]
            unused = not row["mappers"] and not row["holders"]
            claimed += size if creator or unused else 0
            key = (row["kind"], pid)
            by_pid[key] = by_pid.get(key, 0) + size
        true = {}
        for part in self.truth["truth"]:
            key = (part["kind"], part["creator"])
            true[key] = true.get(key, 0) + part["bytes"]
        right = sum(min(size, by_pid.get(key, 0)) for key, size in true.items())
        self.claimed = claimed / max(1, total)
        self.right = right / max(1, sum(true.values()))
        self.peer = self.truth["du"] / max(1, sum(true.values()))
        if claimed < total:
            self.wrong(f"{total - claimed} bytes have neither maker nor are orphans")
        if self.right < 0.98:
            self.wrong(f"the true maker is told for {100 * self.right:.1f} % of the bytes only")

    def line(self):
        if not hasattr(self, "cost"):
            return f"{self.name:24} FAILED"
        told = [f"{self.count:,}", f"{self.bytes / 2**20:.1f}"]
        told += [f"{100 * share:.1f}" for share in (self.claimed, self.right, self.peer)]
        told += [(self.sum - self.used[0]) // PAGE, self.rows]
        told += [f"{size / 1024:.1f}" for size in (self.recorded, self.size)]
        told += [f"{100 * self.cost['cpu_share_of_one_core']:.2f}", f"{self.cost['peak_rss_bytes'] / 2**20:.1f}"]
        return row(self.name, told)


HEAD = ["segments", "MiB", "claimed%", "right%", "du%", "Δpages", "rows", "rec KiB", "json KiB", "cpu %", "RSS MiB"]


def row(name, cells):
    return f"{name:24}" + "".join(f"{cell:>9}" for cell in cells)


def inside(args):
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1g,nr_inodes=200000,mode=1777", "tmpfs", "/dev/shm"], check=True
    )
    print(row("case", HEAD))
    cases = [Case(name, args) for name in args.only or CASES]
    for case in cases:
        try:
            case.run()
        finally:
            if not args.keep:
                shutil.rmtree(case.folder)
            for name in os.listdir("/dev/shm"):
                os.unlink(f"/dev/shm/{name}")
            remove_system_v(args.user)
        print(case.line(), flush=True)
        for problem in case.problems:
            print(f"    {problem}", flush=True)
    failed = sum(bool(case.problems) for case in cases)
    print(f"{len(cases)} cases: {len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def remove_system_v(user):
    """Those of the job's user without attachments."""
    with open("/proc/sysvipc/shm") as file:
        head, *rows = [line.split() for line in file]
    for row in rows:
        row = dict(zip(head, row))
        if int(row["uid"]) == user and row["nattch"] == "0":
            subprocess.run(["ipcrm", "-m", row["shmid"]], check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", nargs="*", choices=CASES)
    parser.add_argument("--user", type=int, default=65534, help="who runs job and ullage; 0 for root")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each job holds still")
    parser.add_argument("--keep", action="store_true", help="leave the recordings where they are")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return inside(args)
    if os.geteuid() != 0:
        raise SystemExit("root is needed to mount a tmpfs; the jobs and ullage then run as --user")
    return subprocess.run(["unshare", "-m", sys.executable, *sys.argv, "--inside"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
