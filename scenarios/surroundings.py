"""What a scenario needs of the machine, and what is put back when it is over: cgroups, processes, segments."""

import os
import shutil
import signal
import subprocess
import tempfile
import time

MARK = "ULLAGE_SCENARIO"
# Nobody's, so that no task of another program counts towards its RLIMIT_NPROC; as in the scenarios.
ANOTHER_USER = 64646


def in_bytes(size):
    """`700m` in bytes; a number stays as it is."""
    if isinstance(size, int):
        return size
    factor = {"k": 10, "m": 20, "g": 30}[size[-1].lower()]
    return int(size[:-1]) << factor


def own_cgroup(controller):
    """Folder of this process's cgroup for a controller, in v1 or v2; none where it is not mounted."""
    with open("/proc/self/cgroup") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, names, path in lines:
        if controller in names.split(","):
            for folder in (f"/sys/fs/cgroup/{controller}{path}", f"/sys/fs/cgroup/{controller}"):
                if os.path.isdir(folder):
                    return folder
    for _, names, path in lines:
        if names == "":
            # A process may not sit beside a controlled child, so a new cgroup goes beside the own one.
            folder = os.path.dirname(f"/sys/fs/cgroup{path}".rstrip("/"))
            if os.path.exists(f"{folder}/cgroup.subtree_control"):
                return folder
    return None


def make_cgroup(controller, limit, below=False):
    """A new cgroup with a limit; returns the folders to remove, innermost first. OSError where not allowed."""
    parent = own_cgroup(controller)
    if parent is None:
        raise OSError(f"the {controller} controller is not mounted")
    folder = tempfile.mkdtemp(prefix="ullage-scenario-", dir=parent)
    made = [folder]
    try:
        v1 = f"/{controller}" in folder
        file = {
            "memory": "memory.limit_in_bytes" if v1 else "memory.max",
            "pids": "pids.max",
            "cpu": "cpu.cfs_quota_us" if v1 else "cpu.max",
        }[controller]
        with open(f"{folder}/{file}", "w") as out:
            out.write(str(limit))
        if below:
            inner = f"{folder}/inner"
            os.mkdir(inner)
            made.insert(0, inner)
    except OSError:
        remove_cgroups(made)
        raise
    return made


def remove_cgroups(folders):
    for folder in folders:
        for _ in range(100):
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                for pid in cgroup_pids(folder):
                    end(pid)
                time.sleep(0.05)


def cgroup_pids(folder):
    try:
        with open(f"{folder}/cgroup.procs") as file:
            return [int(line) for line in file]
    except OSError:
        return []


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def marked(token):
    """Pids whose environment carries the mark of one case: survivors of it."""
    wanted = f"{MARK}={token}".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                pass
    return found


def cleans_up(pid):
    """CPython's resource tracker and torch's manager remove named segments once the others are gone: let them."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read()
    except OSError:
        return False
    return b"resource_tracker" in words or b"torch_shm_manager" in words


def end_marked(token):
    for attempt in range(100):
        left = marked(token)
        if not left:
            return
        for pid in left:
            if attempt > 40 or not cleans_up(pid):
                end(pid)
        time.sleep(0.05)


def segments():
    try:
        return set(os.listdir("/dev/shm"))
    except OSError:
        return set()


def remove_torch_segments(before):
    """Segments of torch that appeared since `before` and whose maker is gone; its manager was killed too."""
    for name in segments() - before:
        parts = name.split("_")
        if parts[0] == "torch" and len(parts) > 2 and not os.path.exists(f"/proc/{parts[1]}"):
            try:
                os.unlink(f"/dev/shm/{name}")
            except OSError:
                pass


def another_user_can_run(*programs):
    """Programs in a home that is closed to others cannot be started by the user that a scenario switches to."""
    for program in programs:
        try:
            subprocess.run([program, "--version"], user=ANOTHER_USER, group=ANOTHER_USER, capture_output=True)
        except OSError as error:
            return f"another user cannot run {program} ({error.strerror})"
    return None


def missing(need, python, plain_python, ullage):
    """Why this machine cannot run a case that needs this; none where it can."""
    if need == "guest":
        return "machine-wide: runs in a virtual machine (guests/)"
    if need == "another-user":
        return another_user_can_run(plain_python, ullage) if os.geteuid() == 0 else "not root"
    if need == "mount-namespace":
        rc = subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode
        return None if rc == 0 else "may not make a mount namespace"
    if need in ("cgroup-memory", "cgroup-pids", "cgroup-cpu"):
        controller = need.split("-")[1]
        try:
            remove_cgroups(make_cgroup(controller, {"memory": 1 << 30, "pids": 1000, "cpu": 50000}[controller]))
            return None
        except OSError as error:
            return f"may not make a {controller} cgroup ({error})"
    if need == "cgroup-v1":
        folder = own_cgroup("memory")
        there = folder and os.path.exists(f"{folder}/memory.oom_control")
        return None if there else "the memory controller is not that of cgroup v1"
    if need == "torch":
        rc = subprocess.run([python, "-c", "import torch"], capture_output=True).returncode
        return None if rc == 0 else f"{python} has no torch"
    if need == "cc":
        return None if shutil.which("cc") else "no C compiler"
    if need.startswith("module-"):
        module = need.split("-", 1)[1]
        rc = subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode
        return None if rc == 0 else f"{python} has no {module}"
    if need.startswith("library-"):
        name = need.split("-", 1)[1]
        command = ["env", f"LD_PRELOAD={name}", plain_python, "-c", f"import ctypes; ctypes.CDLL({name!r})"]
        rc = subprocess.run(command, capture_output=True).returncode
        return None if rc == 0 else f"no {name}"
    if need.startswith("torch-"):
        told = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
        version = tuple(int(part) for part in told.stdout.split(".")[:2])
        wanted = tuple(int(part) for part in need.split("-")[1].split("."))
        return None if version >= wanted else f"{python} has torch {told.stdout.strip() or 'not'}"
    if need.startswith("python-"):
        least, most = [tuple(int(part) for part in version.split(".")) for version in need.split("-")[1:]]
        told = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:3])"], capture_output=True, text=True
        )
        version = tuple(int(part) for part in told.stdout.split())
        return None if least <= version <= most else f"{python} is Python {'.'.join(map(str, version))}"
    if need == "ullage-package":
        rc = subprocess.run([python, "-c", "import ullage._native"], capture_output=True).returncode
        return None if rc == 0 else f"{python} has no package ullage (pip install .)"
    if need == "max-map-count-65530":
        with open("/proc/sys/vm/max_map_count") as file:
            count = int(file.read())
        return None if count <= 65530 else f"vm.max_map_count is {count}"
    if need.startswith("nofile-"):
        wanted = need.split("-")[1]
        rc = subprocess.run(["sh", "-c", f"ulimit -n {wanted}"], capture_output=True).returncode
        return None if rc == 0 else f"may not raise the hard limit of open files to {wanted} (CAP_SYS_RESOURCE)"
    raise ValueError(f"unknown need {need!r}")


def scratch_folder():
    """A folder that another user may enter, too."""
    folder = tempfile.mkdtemp(prefix="ullage-scenario-")
    os.chmod(folder, 0o777)
    return folder


def remove_folder(folder):
    shutil.rmtree(folder, ignore_errors=True)
