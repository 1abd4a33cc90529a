#!/usr/bin/env python3
"""`ullage check --clean` on real orphans: what a killed job left goes, and nothing that anybody uses does.

    sudo tests/clean.py --ullage PATH [--python PYTHON]

In a mount namespace and an IPC namespace of its own, with a /dev/shm of its own. Torch's segments are made by torch
where the Python has it.
"""

import argparse
import contextlib
import ctypes
import json
import mmap
import os
import pty
import select
import signal
import subprocess
import sys
import time

import watched

SHM = "/dev/shm"
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
ANOTHER_USER = 64646

TORCH_JOB = """
import os, sys, time, torch
torch.multiprocessing.set_sharing_strategy("file_system")
kept = [torch.zeros(1000).share_memory_() for _ in range(5)]
print(os.getpid(), flush=True)
time.sleep(3600)
"""

PYTHON_JOB = """
import sys, time
from multiprocessing import shared_memory
kept = [shared_memory.SharedMemory(create=True, size=1 << 20) for _ in range(2)]
print(" ".join(segment.name for segment in kept), flush=True)
time.sleep(3600)
"""


class Test:
    def __init__(self, ullage, python):
        self.ullage, self.python, self.passed, self.failed = ullage, python, 0, 0

    def check(self, what, holds, saw=""):
        self.passed += bool(holds)
        self.failed += not holds
        print(f"{'ok  ' if holds else 'FAIL'} {what}{'' if holds else f': {saw}'}", flush=True)

    def clean(self, *options, user=0):
        def become():
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        command = [self.ullage, "check", "--clean", *options]
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=become)

    def listed(self, **options):
        return json.loads(self.clean("--json", **options).stdout)

    def orphans(self, **options):
        return {row["what"].removeprefix(f"{SHM}/") for row in self.listed(**options)["orphans"]}


def started(python, program):
    """The job, in a session of its own so that all of it can be killed, and the first line that it says."""
    job = subprocess.Popen([python, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True)
    return job, job.stdout.readline().split()


def kill_all(job):
    """Every process of it at once, as a container's end does: helpers that would clean up included.

    They are stopped before the first is killed, since a helper that sees its client gone cleans up.
    """
    pids = of_session(job.pid) + shm_managers()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    job.wait()
    watched.wait_for(lambda: not of_session(job.pid))


def shm_managers():
    """torch_shm_manager makes a session of its own."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/comm") as file:
                mine = file.read().startswith("torch_shm")
            with open(f"/proc/{entry}/mountinfo") as file:
                mine = mine and MARK in file.read()
        except OSError:
            continue
        if mine:
            found.append(int(entry))
    return found


def of_session(leader):
    """Living processes of it."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                state, _, _, session = file.read().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == leader and state != "Z":
            found.append(int(entry))
    return found


MARK = "ullage-clean-test"


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def killed_torch_job(test):
    if not has_torch(test.python):
        print("skip torch's segments: no torch")
        return
    job, (pid,) = started(test.python, TORCH_JOB)
    names = {name for name in os.listdir(SHM) if name.startswith(f"torch_{pid}_")}
    test.check("torch made five segments", len(names) == 5, names)
    test.check("those of a living job are no orphans", not test.orphans() & names)
    kill_all(job)
    left = {name for name in os.listdir(SHM) if name.startswith(f"torch_{pid}_")}
    test.check("the killed job left them", left == names, left)
    test.check("they are listed", names <= test.orphans(), test.orphans())
    text = test.clean()
    test.check("without a terminal nothing is removed", names <= set(os.listdir(SHM)), text.stderr)
    done = test.clean("--yes")
    test.check("--yes removes them", not names & set(os.listdir(SHM)), done.stdout + done.stderr)


def killed_python_job(test):
    job, names = started(test.python, PYTHON_JOB)
    test.check("SharedMemory of a living job is no orphan", not test.orphans() & set(names))
    # The consumer has attached; then the whole job but the consumer dies.
    fd = os.open(f"{SHM}/{names[0]}", os.O_RDWR)
    held = mmap.mmap(fd, 1 << 20)
    os.close(fd)
    kill_all(job)
    orphans = test.orphans()
    test.check("what nobody maps is an orphan, what somebody maps is none", orphans & set(names) == {names[1]}, orphans)
    test.clean("--yes")
    test.check("what is mapped stays", os.path.exists(f"{SHM}/{names[0]}") and not os.path.exists(f"{SHM}/{names[1]}"))
    held.close()
    test.clean("--yes")
    test.check("and goes when it is no longer", not os.path.exists(f"{SHM}/{names[0]}"))


def dead_pid():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def file(name, user=0):
    with open(f"{SHM}/{name}", "wb") as out:
        out.write(b"x" * 4096)
    if user:
        os.chown(f"{SHM}/{name}", user, user)
    return name


def whose(test):
    gone = dead_pid()
    mine, theirs = file(f"torch_{gone}_1_0"), file(f"torch_{gone}_1_1", ANOTHER_USER)
    data, lives = file("dataset.bin"), file(f"torch_{os.getpid()}_1_0")
    test.check("another user's is not listed", test.orphans() == {mine}, test.orphans())
    test.check("it is counted", test.listed()["other_users"]["count"] == 1)
    test.check("each user sees the own", test.orphans(user=ANOTHER_USER) == {theirs})
    test.clean("--yes", user=ANOTHER_USER)
    test.check("and removes no other's", {mine, data, lives} <= set(os.listdir(SHM)) and theirs not in os.listdir(SHM))
    test.clean("--yes")
    test.check("unknown names and living makers stay", set(os.listdir(SHM)) == {data, lives}, os.listdir(SHM))
    os.unlink(f"{SHM}/{data}")
    os.unlink(f"{SHM}/{lives}")


def old_and_young(test):
    name = file("nccl-AbCdEf")
    test.check("a young file of nobody known is kept", not test.orphans())
    long_ago = time.time() - 3600
    os.utime(f"{SHM}/{name}", (long_ago, long_ago))
    test.check("an old one is an orphan", test.orphans() == {name})
    os.unlink(f"{SHM}/{name}")


def in_a_message(test):
    """A descriptor on its way through a socket: no process has it, and the kernel knows."""
    import socket

    name = file(f"torch_{dead_pid()}_1_0")
    one, other = socket.socketpair()
    fd = os.open(f"{SHM}/{name}", os.O_RDWR)
    socket.send_fds(one, [b"x"], [fd])
    os.close(fd)
    test.check("a file that is only in a message is in use", name not in test.orphans())
    test.clean("--yes")
    _, (fd,), _, _ = socket.recv_fds(other, 1, 1)
    test.check("and stays", os.path.exists(f"{SHM}/{name}") and os.fstat(fd).st_nlink == 1)
    os.close(fd)
    os.unlink(f"{SHM}/{name}")


def system_v(test):
    def made(attached):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            shmid = LIBC.shmget(0, 1 << 20, 0o1600)
            ctypes.memset(LIBC.shmat(shmid, None, 0), 1, 1 << 20)
            os.write(write, b"%d\n" % shmid)
            if attached:
                time.sleep(3600)
            os._exit(0)
        shmid = int(os.read(read, 20))
        if not attached:
            os.waitpid(child, 0)
        return shmid, child

    (left, _), (used, child) = made(False), made(True)

    def ids():
        return {row["what"].split()[1] for row in test.listed()["orphans"] if row["kind"] == "sysv"}

    test.check("a System V segment of the dead is an orphan, an attached one is none", ids() == {str(left)}, ids())
    test.clean("--yes")
    with open("/proc/sysvipc/shm") as rows:
        there = {line.split()[1] for line in rows}
    test.check("and is removed alone", str(left) not in there and str(used) in there, there)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    test.check("killed, it leaves one", ids() == {str(used)}, ids())
    test.clean("--yes")


def at_a_terminal(test):
    gone = dead_pid()

    def answered(answer):
        for number in range(3):
            file(f"torch_{gone}_1_{number}")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(test.ullage, [test.ullage, "check", "--clean"])
        text, sent = b"", False
        while select.select([terminal], [], [], 300)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
            if b"anything else for none: " in text and not sent:
                test.check("nothing goes before the answer", len(os.listdir(SHM)) == 3)
                os.write(terminal, answer.encode() + b"\r")
                sent = True
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        left = set(os.listdir(SHM))
        for name in left:
            os.unlink(f"{SHM}/{name}")
        test.check(f"the answer {answer!r} is asked for, and the status is 0", sent and status == 0, text)
        return {name.rpartition("_")[2] for name in left}

    test.check("y removes all", answered("y") == set())
    test.check("n removes none", answered("n") == {"0", "1", "2"})
    test.check("numbers remove those", answered("1 3") == {"1"})
    test.check("what is not understood removes none", answered("1 9") == {"0", "1", "2"})


def many(test):
    gone = dead_pid()
    for number in range(852):
        file(f"torch_{gone}_1_{number}")
    start = time.monotonic()
    done = test.clean("--yes")
    test.check("852 orphans go", not os.listdir(SHM), done.stderr)
    print(f"     852 orphans listed and removed in {time.monotonic() - start:.2f} s")


def inside(args):
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m,mode=1777", MARK, SHM], check=True)
    test = Test(os.path.abspath(args.ullage), args.python)
    for part in (
        killed_torch_job,
        killed_python_job,
        whose,
        old_and_young,
        in_a_message,
        system_v,
        at_a_terminal,
        many,
    ):
        part(test)
    print(f"{test.passed} passed, {test.failed} failed")
    return 1 if test.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return inside(args)
    if os.geteuid() != 0:
        print("skipped: root is needed to mount a tmpfs")
        return 0
    return subprocess.run(["unshare", "-m", "-i", sys.executable, *sys.argv, "--inside"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
