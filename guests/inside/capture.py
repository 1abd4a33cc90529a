"""With --fixtures: files of /proc and /sys as the parsers will meet them on this kernel."""

import os
import time

from guest import CGROUPS, Cgroup, job, kernel_log, killed_lines, new_kernel_lines, read, run, start
from registry import case

OF_PROCESS = ("stat", "status", "maps", "limits", "cgroup", "mountinfo", "cmdline", "comm")
OF_MACHINE = """
    meminfo vmstat stat mounts version pressure/memory pressure/cpu pressure/io sys/vm/max_map_count
    sys/vm/overcommit_memory sys/vm/overcommit_ratio sys/kernel/pid_max sys/kernel/threads-max
    sys/kernel/osrelease sys/fs/file-nr
""".split()


@case("fixtures: an idle process")
def idle(artifacts):
    group = Cgroup("idle", memory_max=64 << 20, pids_max=100)
    process = start(job("sleeper", "/tmp/idle", 20), cgroup=group)
    deadline = time.monotonic() + 20
    while not os.path.exists("/tmp/idle") and time.monotonic() < deadline:
        time.sleep(0.1)
    for name in OF_PROCESS:
        artifacts[f"fixture/idle/proc/{process.pid}/{name}"] = read(f"/proc/{process.pid}/{name}")
    for name in OF_MACHINE:
        artifacts[f"fixture/idle/proc/{name}"] = read(f"/proc/{name}")
    artifacts.update((f"fixture/idle/{name}", content) for name, content in group.files())
    for name in ("cgroup.controllers", "memory.stat"):
        artifacts[f"fixture/idle/{CGROUPS.strip('/')}/{name}"] = read(f"{CGROUPS}/{name}")
    process.kill()
    process.wait()
    yield "the files are there", artifacts["fixture/idle/sys/fs/cgroup/idle/memory.stat"]


@case("fixtures: forks refused by pids.max")
def refused(artifacts):
    before, group = kernel_log(), Cgroup("few", pids_max=4)
    ended = run(
        ["/usr/bin/python3", "-c", "import os, time\nwhile os.fork(): time.sleep(0.05)\ntime.sleep(1)"],
        20,
        cgroup=group,
    )
    lines = new_kernel_lines(before)
    artifacts["fixture/pids-limit/dmesg"] = "\n".join(lines) + "\n"
    artifacts.update((f"fixture/pids-limit/{name}", content) for name, content in group.files())
    yield "fork was refused", "BlockingIOError" in ended.err, ended.err[-300:]
    yield "the kernel says so", killed_lines(lines, "fork rejected by pids controller"), lines[-3:]
