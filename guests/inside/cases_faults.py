"""Machine-wide faults beyond those of scenarios/: in a worker, in fork, under a limit two groups up, and a kill
that is nobody's OOM. Each first proves by the kernel's own words that the fault happened.
"""

import json
import os
import time

from fixture import Fixture
from guest import (
    CGROUPS,
    ULLAGE,
    Cgroup,
    finish,
    job,
    kernel_log,
    killed_lines,
    new_kernel_lines,
    numbers,
    read,
    report,
    start,
    watched,
    write,
)
from registry import case
from verdicts import ended_like, expect, shape


@case("host OOM kill of a worker")
def host_worker(artifacts):
    before, counted = kernel_log(), numbers("/proc/vmstat").get("oom_kill")
    ended = watched(job("eat", "all", 160, "child"), "/runs/host-worker")
    lines = new_kernel_lines(before)
    yield "the kernel logs global_oom", killed_lines(lines, "global_oom"), lines[-3:]
    yield (
        "only the worker was killed",
        numbers("/proc/vmstat").get("oom_kill") == counted + 1,
        killed_lines(lines, "Killed process"),
    )
    yield ended_like(ended, 1)
    yield from expect("/runs/host-worker", "host-oom-kill", artifacts, outcome="exit")


@case("strict overcommit refuses fork")
def overcommit_fork(artifacts):
    before = kernel_log()
    write("/proc/sys/vm/overcommit_memory", "2")
    try:
        ended = watched(job("commit", "fork"), "/runs/overcommit-fork")
    finally:
        write("/proc/sys/vm/overcommit_memory", "0")
    yield ended_like(ended, 1)
    yield "fork failed with ENOMEM", "[Errno 12] Cannot allocate memory" in ended.err, ended.err[-300:]
    yield "nothing was killed", not killed_lines(new_kernel_lines(before), "Killed process")
    yield from expect(
        "/runs/overcommit-fork", "strict-overcommit", artifacts, ("established", "supported"), outcome="exit"
    )


@case("cgroup v2 OOM kill of a worker")
def memcg_worker(artifacts):
    group, before = Cgroup("tight-worker", memory_max=160 << 20), kernel_log()
    ended = watched(job("eat", "all", 48, "child"), "/runs/memcg-worker", cgroup=group)
    yield "the kernel logs CONSTRAINT_MEMCG", killed_lines(new_kernel_lines(before), "constraint=CONSTRAINT_MEMCG")
    yield "oom_kill of the group is 1", "oom_kill 1" in group["memory.events"], group["memory.events"]
    yield ended_like(ended, 1)
    yield from expect("/runs/memcg-worker", "memcg-oom-kill", artifacts, outcome="exit")


@case("cgroup v2 OOM kill of a worker between two ticks")
def memcg_quick_worker(artifacts):
    group = Cgroup("tight-quick", memory_max=160 << 20)
    ended = watched(job("eat", "all", 4000, "late-child"), "/runs/memcg-quick", cgroup=group)
    yield "oom_kill of the group is 1", "oom_kill 1" in group["memory.events"], group["memory.events"]
    yield ended_like(ended, 1)
    yield from expect("/runs/memcg-quick", "memcg-oom-kill", artifacts, ("established", "supported"), outcome="exit")


@case("cgroup v2 OOM kill by an ancestor's limit")
def memcg_ancestor(artifacts):
    above, before = Cgroup("pod", memory_max=160 << 20), kernel_log()
    above.allow_children()
    group = Cgroup("pod/container")
    ended = watched(job("eat", "all", 48), "/runs/memcg-ancestor", cgroup=group)
    lines = new_kernel_lines(before)
    fixture = Fixture(artifacts, "memcg-ancestor")
    fixture.put("dmesg", "\n".join(lines) + "\n")
    fixture.group("v2", CGROUPS, "/pod/container")
    fixture.take("/proc/self/mountinfo")
    fixture.truth(
        limits={"/pod": 160 << 20, "/pod/container": "unlimited"},
        oom={"constraint": "cgroup", "oom_cgroup": "/pod", "task_cgroup": "/pod/container"},
    )
    yield "the ancestor's limit was met", killed_lines(lines, "oom_memcg=/pod,"), killed_lines(lines, "oom-kill:")
    yield ended_like(ended, -9)
    yield from expect("/runs/memcg-ancestor", "memcg-oom-kill", artifacts, outcome="oom-kill")


@case("an unrelated OOM kill while the job is killed by hand", needs_ullage=True)
def unrelated(artifacts):
    pid_file = "/tmp/sleeper"
    sleeper = job("sleeper", pid_file, 60)
    bystander = Cgroup("bystander", memory_max=400 << 20)
    watcher = start([ULLAGE, "run", "-q", "--record", "/runs/unrelated", "--", *sleeper], cgroup=bystander)
    deadline = time.monotonic() + 20
    while not os.path.exists(pid_file) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(2)
    elsewhere = Cgroup("elsewhere", memory_max=64 << 20)
    other = finish(start(job("eat", "all"), cgroup=elsewhere), 40)
    yield (
        "the other job was killed by the kernel",
        other.code == -9 and "oom_kill 1" in elsewhere["memory.events"],
        other.code,
    )
    os.kill(int(read(pid_file)), 9)
    ended = finish(watcher, 20)
    yield ended_like(ended, -9)
    verdict = report("/runs/unrelated")
    artifacts["unrelated.json"] = json.dumps(verdict, indent=1)
    yield (
        "no finding blames the OOM killer",
        not [f for f in verdict["findings"] if "oom" in f["cause"]],
        shape(verdict),
    )
    killed = verdict["outcome"]["kind"] == "signal" and verdict["outcome"]["signal"] == 9
    yield (
        "killed by signal 9, sender unknown",
        killed and "unknown" in str(verdict["outcome"]["by"]),
        verdict["outcome"],
    )
