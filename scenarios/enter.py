"""Becomes JOB inside the surroundings that a scenario asks for: cgroups, mounts, limits, a user.

    enter.py '{"cgroups": [...], "tmpfs": [...], "files": [...], "ipc": {...}, "first": [...], "limits": {...},
               "user": 64646}' JOB...

A limit is a number, or a soft one and a hard one. The order is the point: mounts need root, the cgroup must be
joined before a limit bites, and the user is given up last. It ends in exec, so that JOB keeps this pid.
"""

import ctypes
import json
import os
import resource
import subprocess
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "as": resource.RLIMIT_AS,
    "nproc": resource.RLIMIT_NPROC,
    "memlock": resource.RLIMIT_MEMLOCK,
    "stack": resource.RLIMIT_STACK,
}


def unshare(flag, name):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flag) != 0:
        raise OSError(ctypes.get_errno(), f"unshare({name})")


def limit_system_v(settings):
    unshare(CLONE_NEWIPC, "CLONE_NEWIPC")
    for name, value in settings.items():
        with open(f"/proc/sys/kernel/{name}", "w") as file:
            file.write(str(value))


def mount_privately(mounts, files):
    unshare(CLONE_NEWNS, "CLONE_NEWNS")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for file in files:
        subprocess.run(["mount", "--bind", file["from"], file["path"]], check=True)
    for mount in mounts:
        os.makedirs(mount["path"], exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", mount["options"], "tmpfs", mount["path"]], check=True)


def main():
    setup, command = json.loads(sys.argv[1]), sys.argv[2:]
    if setup.get("tmpfs") or setup.get("files"):
        mount_privately(setup.get("tmpfs", []), setup.get("files", []))
    for cgroup in setup.get("cgroups", []):
        with open(os.path.join(cgroup, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))
    if setup.get("ipc"):
        limit_system_v(setup["ipc"])
    if setup.get("first"):
        # It may end in any way: what it leaves behind is the point.
        subprocess.run(setup["first"])
    for name, value in setup.get("limits", {}).items():
        soft, hard = value if isinstance(value, list) else (value, value)
        resource.setrlimit(LIMITS[name], (soft, hard))
    if setup.get("user"):
        os.setgroups([])
        os.setgid(setup["user"])
        os.setuid(setup["user"])
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
