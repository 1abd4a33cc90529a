"""Ends itself by SIGKILL, after the kernel's log (a file, where one is given) has said that the kernel did it."""

import os
import signal
import sys
import time

DECIDED = (
    "oom-kill:constraint=CONSTRAINT_MEMORY_POLICY,nodemask=0,cpuset=/,mems_allowed=0-1,"
    "task_memcg=/,task={name},pid={pid},uid=0"
)
KILLED = (
    "Out of memory: Killed process {pid} ({name}) total-vm:900000kB, anon-rss:204800kB, file-rss:8000kB, "
    "shmem-rss:0kB, UID:0 pgtables:700kB oom_score_adj:0"
)

held = b"\1" * (200 << 20)
with open("/proc/self/comm") as file:
    name = file.read().strip()
time.sleep(2)
for level, line in enumerate((DECIDED, KILLED) if len(sys.argv) > 1 else ()):
    record = line.format(name=name, pid=os.getpid())
    microseconds = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1e6)
    with open(sys.argv[1], "a") as log:
        log.write(f"{4 - level},{9000 + level},{microseconds},-;{record}\n")
    # A file gives all that it has at one read, where the kernel gives one record.
    time.sleep(1.5)
os.kill(os.getpid(), signal.SIGKILL)
