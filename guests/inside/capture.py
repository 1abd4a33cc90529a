"""With --fixtures: files of /proc and /sys as the parsers will meet them on this kernel, with cgroup v2."""

import json
import os

from fixture import BIND, PRIVATE, Fixture, in_a_child, mount, unshare, wait_for
from guest import CGROUPS, Cgroup, job, kernel_log, killed_lines, new_kernel_lines, run, start, write
from registry import case
from sharing import shared_pages


@case("fixtures: an idle process")
def idle(artifacts):
    group = Cgroup("idle", memory_max=64 << 20, pids_max=100)
    process = start(job("sleeper", "/tmp/idle", 20), cgroup=group)
    wait_for("/tmp/idle")
    fixture = Fixture(artifacts, "idle")
    fixture.process(process.pid)
    fixture.descriptors(process.pid)
    fixture.machine()
    fixture.group("v2", CGROUPS, "/idle")
    fixture.take("/proc/self/mountinfo")
    fixture.truth(main=process.pid, limits={"/idle": 64 << 20}, pids={"/idle": 100})
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
    fixture = Fixture(artifacts, "pids-limit")
    fixture.put("dmesg", "\n".join(lines) + "\n")
    fixture.group("v2", CGROUPS, "/few")
    fixture.take("/proc/self/mountinfo")
    fixture.truth(pids={"/few": 4}, fork_rejected="/few")
    yield "fork was refused", "BlockingIOError" in ended.err, ended.err[-300:]
    yield "the kernel says so", killed_lines(lines, "fork rejected by pids controller"), lines[-3:]


@case("fixtures: three processes that share memory")
def shared(artifacts):
    group = Cgroup("sharing", memory_max=256 << 20)
    fixture = Fixture(artifacts, "sharing")
    yield from shared_pages(fixture, lambda pid: write(f"{group.path}/cgroup.procs", str(pid)))
    fixture.group("v2", CGROUPS, "/sharing")
    fixture.truth(**fixture.facts, limits={"/sharing": 256 << 20})


@case("fixtures: the limit of an ancestor")
def ancestor(artifacts):
    above = Cgroup("tight", memory_max=100 << 20, pids_max=60)
    above.allow_children()
    wide = Cgroup("tight/wide", memory_max=1 << 40)
    wide.allow_children()
    group = Cgroup("tight/wide/free")
    process = start(job("hold", "/tmp/hold", 32), cgroup=group)
    wait_for("/tmp/hold")
    fixture = Fixture(artifacts, "cgroup-v2-ancestor")
    fixture.process(process.pid)
    fixture.machine()
    fixture.take("/proc/self/mountinfo")
    fixture.group("v2", CGROUPS, "/tight/wide/free")
    fixture.truth(
        main=process.pid,
        held=32 << 20,
        limits={"/tight": 100 << 20, "/tight/wide": 1 << 40, "/tight/wide/free": "unlimited"},
        pids={"/tight": 60, "/tight/wide": "unlimited", "/tight/wide/free": "unlimited"},
        tightest="/tight",
    )
    process.kill()
    process.wait()
    yield "the group has no limit of its own", group["memory.max"] == "max\n", group["memory.max"]
    yield "the one above has", above["memory.max"] == f"{100 << 20}\n", above["memory.max"]


def namespace(artifacts, label, shown):
    """A container: its own cgroup namespace, and mounted there its own groups, the host's, or a stranger's."""
    group, stranger = Cgroup(label, memory_max=96 << 20), Cgroup("stranger", memory_max=48 << 20)

    def inside():
        write(f"{group.path}/cgroup.procs", str(os.getpid()))
        unshare("cgroup", "mount")
        mount("none", "/", "", flags=PRIVATE)
        if shown == "own":
            # The kernel refuses the same filesystem twice on one directory.
            mount("none", CGROUPS, "tmpfs")
            mount("none", CGROUPS, "cgroup2")
        elif shown == "stranger":
            mount(stranger.path, CGROUPS, "", flags=BIND)
        seen = {}
        fixture = Fixture(seen, label)
        fixture.process(os.getpid())
        fixture.machine()
        for name in ("mountinfo", "cgroup", "stat"):
            fixture.take(f"/proc/self/{name}")
        fixture.group("v2", CGROUPS, f"/{label}" if shown == "host" else "/")
        limits = {"own": {"/": 96 << 20}, "host": {f"/{label}": 96 << 20}, "stranger": {}}[shown]
        fixture.truth(main=os.getpid(), limits=limits, out_of_sight="/" if shown == "stranger" else None)
        return seen

    artifacts.update(in_a_child(inside))
    truth = json.loads(artifacts[f"fixture/{label}/truth.json"])
    own = artifacts[f"fixture/{label}/proc/{truth['main']}/cgroup"]
    yield "the process sees itself at the top", b"0::/\n" in own, own
    mounts = artifacts[f"fixture/{label}/proc/self/mountinfo"]
    top = {"own": b" / /sys/fs/cgroup ", "host": b" /.. /sys/fs/cgroup ", "stranger": b" /../stranger /sys/fs/cgroup "}
    yield "the mount tells which it is", top[shown] in mounts, mounts


@case("fixtures: a cgroup namespace with its own mount")
def namespace_own(artifacts):
    yield from namespace(artifacts, "cgroup-v2-namespace", "own")


@case("fixtures: a cgroup namespace below the host's mount")
def namespace_host(artifacts):
    yield from namespace(artifacts, "cgroup-v2-namespace-host-mount", "host")


@case("fixtures: a cgroup namespace that is shown a stranger's group")
def namespace_stranger(artifacts):
    yield from namespace(artifacts, "cgroup-v2-namespace-stranger", "stranger")
