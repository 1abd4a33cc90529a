"""What the cases share inside the guest: starting things as a user would, and looking at the kernel.

Everything started here gets oom_score_adj 0 back: only PID 1 and the harness are exempt from the OOM killer.
"""

import json
import os
import signal
import subprocess
import sys
import time

ULLAGE = "/usr/bin/ullage"
HAVE_ULLAGE = os.path.exists(ULLAGE)
PYTHON = "/usr/bin/python3"
CGROUPS = "/sys/fs/cgroup"
# /guest in a guest; somewhere else where fixtures are captured on the machine itself.
FOLDER = os.path.dirname(os.path.abspath(__file__))


def read(path, default=""):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return default


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def numbers(path):
    """`name value` lines of a kernel file as a dict; of meminfo, bytes."""
    found = {}
    for line in read(path).splitlines():
        fields = line.replace(":", " ").split()
        if len(fields) >= 2 and fields[1].isdigit():
            found[fields[0]] = int(fields[1]) * (1024 if fields[-1] == "kB" else 1)
    return found


def kernel_log():
    return subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace").stdout.splitlines()


def new_kernel_lines(before):
    """Lines that the kernel logged since `before` (an earlier kernel_log()) was taken."""
    now = kernel_log()
    last = before[-1] if before else None
    if last in now:
        return now[len(now) - now[::-1].index(last) :]
    return now


def killed_lines(lines, marker):
    return [line for line in lines if marker in line]


class Cgroup:
    """A cgroup of version 2 for one case. Files by name: group["memory.max"] = "64M"."""

    def __init__(self, name, **settings):
        self.path = os.path.join(CGROUPS, name)
        os.makedirs(self.path, exist_ok=True)
        for key, value in settings.items():
            write(f"{self.path}/{key.replace('_', '.', 1)}", str(value))

    def __getitem__(self, name):
        return read(f"{self.path}/{name}")

    def allow_children(self):
        write(f"{self.path}/cgroup.subtree_control", "+memory +pids")


class OnV1:
    """A group of a v1 controller, removed at the end of the block. Settings without the controller's name."""

    def __init__(self, controller, name, **settings):
        self.path, self.controller, self.settings = f"{CGROUPS}/{controller}/{name}", controller, settings

    def __enter__(self):
        os.makedirs(self.path, exist_ok=True)
        for key, value in self.settings.items():
            write(f"{self.path}/{self.controller}.{key}", str(value))
        return self

    def __exit__(self, *_):
        # The kernel needs a moment after the last process.
        for _ in range(50):
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.1)


class Ended:
    """A command that has ended: `code` as wait(2) says it (negative: signal), and what it printed."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


def start(argv, cgroup=None, env=None, enter=None, **more):
    def before_exec():
        write("/proc/self/oom_score_adj", "0")
        if cgroup is not None:
            write(f"{cgroup.path}/cgroup.procs", str(os.getpid()))
        if enter is not None:
            enter(os.getpid())

    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "ULLAGE_HOME": "/runs"}
    environment.update(env or {})
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=before_exec,
        env=environment,
        start_new_session=True,
        text=True,
        errors="replace",
        **more,
    )


def finish(process, timeout):
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        out, err = process.communicate(timeout=10)
        raise AssertionError(f"still running after {timeout} s; it said: {(out + err)[-400:]}") from None
    return Ended(process.returncode, out, err)


def run(argv, timeout=60, **more):
    return finish(start(argv, **more), timeout)


def job(name, *arguments):
    return [PYTHON, f"{FOLDER}/jobs/{name}.py", *map(str, arguments)]


def watched(argv, record, options=(), timeout=60, **more):
    """`ullage run` of argv, recorded into `record`; the bare command where the guest has no ullage."""
    if not HAVE_ULLAGE:
        return run(argv, timeout, **more)
    return run([ULLAGE, "run", "-q", "--record", record, *options, "--", *argv], timeout, **more)


def report(record):
    """The verdict of a recording, read afterwards by `ullage report`, as a user would."""
    ended = run([ULLAGE, "report", "--json", record])
    if ended.code != 0:
        raise AssertionError(f"ullage report ended with {ended.code}: {ended.err[-400:]}")
    return json.loads(ended.out)


def exported(record):
    """Samples and events of a recording, in order."""
    ended = run([ULLAGE, "export", record, "--format", "json"])
    if ended.code != 0:
        raise AssertionError(f"ullage export ended with {ended.code}: {ended.err[-400:]}")
    return [json.loads(line) for line in ended.out.splitlines() if line.strip()]


def say(text):
    print(f"guest: {text}", file=sys.stderr, flush=True)
