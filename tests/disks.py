#!/usr/bin/env python3
"""Does a full or a hung disk harm the job, whose recording, now.json, verdict.json and file of metrics are on it?

    disks.py --ullage PATH

The full one is a small tmpfs, the hung one an ext4 in a file that `fsfreeze` stops: each write waits in the kernel
until it is thawed. Needs root, and says so where a disk cannot be had. The job is compared with itself without
ullage: what it prints, its status, and that it comes to its end while the disk still hangs.
"""

import argparse
import contextlib
import glob
import os
import subprocess
import sys
import tempfile

import watched

JOB = """
import sys, time
held = []
for n in range(30):
    held.append(bytearray(1 << 20))
    print("step", n, flush=True)
    time.sleep(0.1)
open(sys.argv[1], "w").close()
sys.exit(7)
"""


@contextlib.contextmanager
def mounted(folder, *words):
    """None where it cannot be mounted."""
    os.mkdir(folder)
    done = subprocess.run(["mount", *words, folder], capture_output=True, text=True)
    try:
        yield folder if done.returncode == 0 else None
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "--lazy", folder], check=True)


class Test:
    def __init__(self, ullage, folder):
        self.ullage, self.folder, self.failed, self.number = ullage, folder, 0, 0
        self.job = os.path.join(folder, "job.py")
        with open(self.job, "w") as file:
            file.write(JOB)
        self.wanted = self.end(*self.start())

    def check(self, what, holds, got=""):
        print(f"{'ok  ' if holds else 'FAIL'}  {what}", flush=True)
        if not holds:
            self.failed += 1
            print(got)

    def start(self, *before):
        """The job, with files for what it prints and for its end."""
        self.number += 1
        out, over = (os.path.join(self.folder, f"{name}{self.number}") for name in ("out", "over"))
        with open(out, "w") as file:
            job = subprocess.Popen([*before, sys.executable, self.job, over], stdin=subprocess.DEVNULL, stdout=file)
        return job, out, over

    def end(self, job, out, over):
        status = job.wait()
        with open(out) as file:
            return file.read(), status, os.path.exists(over)

    def run(self, home):
        words = ["run", "-q", "--metrics-file", os.path.join(home, "metrics.prom"), "--"]
        return self.start("env", f"ULLAGE_HOME={home}", self.ullage, *words)


def full(test):
    with mounted(os.path.join(test.folder, "full"), "-t", "tmpfs", "-o", "size=256k", "tmpfs") as disk:
        if disk is None:
            return print("a tmpfs cannot be mounted here: no full disk was tried")
        # Full while the job runs; the folder of the recording is there, and its now.json was written.
        job = test.run(disk)
        live = os.path.join(disk, "*", "now.json")
        test.check("full: now.json was written before", watched.wait_for(lambda: glob.glob(live)))
        with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb", buffering=0) as filler:
            while filler.write(b"x" * 4096):
                pass
        test.check("full: the job is as without ullage", (got := test.end(*job)) == test.wanted, got)
        names = glob.glob(os.path.join(disk, "*", "*")) + glob.glob(os.path.join(disk, "*"))
        left = [name for name in names if name.endswith((".tmp", "now.json"))]
        test.check("full: nothing half written is left", not left, left)
        stays = os.path.join(disk, "metrics.prom")
        shown = open(stays).read() if os.path.exists(stays) else ""
        test.check("full: no metrics of a live job are left", "ullage_memory_bytes" not in shown, shown)
        test.check("full from the beginning", (got := test.end(*test.run(disk))) == test.wanted, got)


def hung(test):
    image = os.path.join(test.folder, "image")
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    with mounted(os.path.join(test.folder, "hung"), "-o", "loop", image) as disk:
        if disk is None:
            return print("a loop device cannot be had here: no hung disk was tried")
        job = test.run(disk)
        live = os.path.join(disk, "*", "now.json")
        test.check("hung: now.json was written before", watched.wait_for(lambda: glob.glob(live)))
        frozen = subprocess.run(["fsfreeze", "--freeze", disk]).returncode == 0
        try:
            if not frozen:
                return print("fsfreeze does not work here: no hung disk was tried")
            ended = watched.wait_for(lambda: os.path.exists(job[2]), 60)
            test.check("hung: the job comes to its end while the disk hangs", ended)
        finally:
            if frozen:
                subprocess.run(["fsfreeze", "--unfreeze", disk], check=True)
            got = test.end(*job)
        test.check("hung: the job is as without ullage", got == test.wanted, got)
        done = glob.glob(os.path.join(disk, "*", "verdict.json"))
        with open(os.path.join(disk, "metrics.prom")) as metrics:
            shown = metrics.read()
        test.check("hung: the file of metrics holds the end", "ullage_run_ended{" in shown and "memory" not in shown, shown)
        test.check("hung: the recording is whole once it works again", len(done) == 1 and not glob.glob(live), done)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ullage", required=True)
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("only root mounts disks: none was tried")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(args.ullage), folder)
        full(test)
        hung(test)
    print("all well" if not test.failed else f"{test.failed} failed")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
