"""Shared by the programs here: starts `ullage run`, and reads what it recorded."""

import contextlib
import json
import os
import select
import subprocess
import time


def start_ticks(pid="self"):
    """Field 22 of /proc/PID/stat: with the pid, who a process is."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def start(ullage, folder, job, *options):
    """`ullage run` of a job, recording into `folder`/run."""
    return subprocess.Popen(
        [ullage, "run", "-q", "--record", f"{folder}/run", *options, "--", *job],
        stdin=subprocess.DEVNULL,
        stdout=open(f"{folder}/out", "wb"),
        stderr=subprocess.STDOUT,
    )


def exported(ullage, folder):
    """Every item of the recording: [{"sample": …} or {"event": …}]."""
    done = subprocess.run(
        [ullage, "export", f"{folder}/run", "--format", "json"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"ullage export: status {done.returncode}: {done.stderr.strip()[:300]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def samples(items):
    return [item["sample"] for item in items if "sample" in item]


def events(items, kind):
    whats = [item["event"]["what"] for item in items if "event" in item]
    return [what for what in whats if what["event"] == kind]


def started_unix(folder):
    with open(f"{folder}/run/run.json") as file:
        return json.load(file)["started_unix"]


def runs(words):
    """Whether a process was started by these words."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                if file.read().rstrip("\0").split("\0") == words.split():
                    return True
        except OSError:
            pass
    return False


def marked(variable, token):
    """pids of processes with this variable of the environment that are no zombies."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if f"{variable}={token}".encode() not in file.read():
                    continue
            with open(f"/proc/{name}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] != "Z":
                    found.append(int(name))
        except OSError:
            continue
    return found


def unused_names(before):
    """New names in /dev/shm that no process maps; those of other programs of this machine are mapped by them."""
    new = {}
    for name in set(os.listdir("/dev/shm")) - before:
        with contextlib.suppress(FileNotFoundError):
            facts = os.stat(f"/dev/shm/{name}")
            new[name] = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}", str(facts.st_ino)
    for pid in filter(str.isdigit, os.listdir("/proc") if new else []):
        try:
            with open(f"/proc/{pid}/maps") as file:
                # Not by name: who makes a semaphore maps it under one that glibc removes.
                mapped = {tuple(line.split(None, 5)[3:5]) for line in file if "/dev/shm/" in line}
        except OSError:
            continue
        new = {name: which for name, which in new.items() if which not in mapped}
    return set(new) & set(os.listdir("/dev/shm"))


def wait_for(condition, seconds=300):
    """Whether it comes true; only a failure takes so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def end_terminal(tmux):
    """Ends a tmux, called by `tmux(*words)`, and its shells: a shell that is hung up still writes its history."""
    pids = set(tmux("list-panes", "-a", "-F", "#{pid} #{pane_pid}").split())
    ends = []
    for pid in map(int, pids):
        try:
            ends.append(os.pidfd_open(pid))
        except ProcessLookupError:
            pass
    tmux("kill-server")
    for end in ends:
        # Only a failure takes so long; the caller then finds what is left.
        select.select([end], [], [], 60)
        os.close(end)


def log_line(path, **content):
    """Appends one JSON line in one write, so that many processes can share a log."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, json.dumps(content).encode() + b"\n")
    os.close(file)


def log_lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]
