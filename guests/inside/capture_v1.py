"""With --fixtures, on a machine with cgroup v1 beside an empty v2 (hybrid): the limits of v1, and namespaces on it.

Only kernels that still have v1: Debian's 6.12 was built without.
"""

import json
import os

from fixture import BIND, PRIVATE, Fixture, in_a_child, mount, unshare, wait_for
from guest import CGROUPS, OnV1, job, start, write
from registry import case
from sharing import shared_pages

MEMORY, PIDS = f"{CGROUPS}/memory", f"{CGROUPS}/pids"
# Page cache needs a disk: the guests have none.
DISK = os.environ.get("ULLAGE_FIXTURE_DISK")


def hold(artifacts, label, path, pids_path, facts):
    """A process that holds 32 MiB, and read a file of 64 MiB twice where there is a disk, in these groups."""

    def enter(pid):
        write(f"{MEMORY}{path}/cgroup.procs", str(pid))
        write(f"{PIDS}{pids_path}/cgroup.procs", str(pid))

    ready, big = f"/tmp/{label}", f"{DISK}/{label}.data"
    process = start(job("hold", ready, 32, *([big, 64] if DISK else [])), enter=enter)
    try:
        wait_for(ready)
        fixture = Fixture(artifacts, label)
        fixture.process(process.pid)
        fixture.machine()
        fixture.take("/proc/self/mountinfo")
        fixture.group("memory", MEMORY, path)
        fixture.group("pids", PIDS, pids_path)
        fixture.group("v2", f"{CGROUPS}/unified", "/")
        fixture.truth(main=process.pid, held=32 << 20, cached=64 << 20 if DISK else 0, **facts)
        return fixture
    finally:
        process.kill()
        process.wait()
        os.unlink(ready)
        if DISK:
            os.unlink(big)


@case("fixtures: cgroup v1, the limit of an ancestor")
def ancestor(artifacts):
    with OnV1("memory", "tight", limit_in_bytes=100 << 20), OnV1("memory", "tight/free"):
        # A pids group of the same path that the job is not in, with a limit that is not the job's.
        with OnV1("pids", "tight", max=7), OnV1("pids", "beside", max=60):
            hold(
                artifacts,
                "cgroup-v1-ancestor",
                "/tight/free",
                "/beside",
                {
                    "limits": {"/": "unlimited", "/tight": 100 << 20, "/tight/free": "unlimited"},
                    "pids": {"/beside": 60},
                    "tightest": "/tight",
                },
            )
    limit = artifacts["fixture/cgroup-v1-ancestor/sys/fs/cgroup/memory/tight/free/memory.limit_in_bytes"]
    yield "unlimited is a huge number", limit == b"9223372036854771712\n", limit


@case("fixtures: cgroup v1, a limit above the machine's memory")
def above(artifacts):
    with OnV1("memory", "vast", limit_in_bytes=1 << 40), OnV1("pids", "vast"):
        facts = {"limits": {"/": "unlimited", "/vast": 1 << 40}, "pids": {"/vast": "unlimited"}}
        hold(artifacts, "cgroup-v1-above-machine", "/vast", "/vast", {**facts, "tightest": None})
    limit = artifacts["fixture/cgroup-v1-above-machine/sys/fs/cgroup/memory/vast/memory.limit_in_bytes"]
    yield "the limit is there", limit == b"1099511627776\n", limit


def namespace(artifacts, label, shown):
    def inside():
        write(f"{MEMORY}/{label}/cgroup.procs", str(os.getpid()))
        unshare("cgroup", "mount")
        mount("none", "/", "", flags=PRIVATE)
        if shown == "own":
            # As container runtimes do; the kernel refuses the same filesystem twice on one directory.
            mount("none", CGROUPS, "tmpfs", "mode=755")
            os.mkdir(MEMORY)
            mount("none", MEMORY, "cgroup", "memory")
        elif shown == "stranger":
            mount(f"{MEMORY}/stranger", MEMORY, "", flags=BIND)
        seen = {}
        fixture = Fixture(seen, label)
        fixture.process(os.getpid())
        fixture.machine()
        for name in ("mountinfo", "cgroup", "stat"):
            fixture.take(f"/proc/self/{name}")
        fixture.group("memory", MEMORY, f"/{label}" if shown == "host" else "/")
        limits = {"own": {"/": 96 << 20}, "host": {f"/{label}": 96 << 20}, "stranger": {}}[shown]
        fixture.truth(main=os.getpid(), limits=limits, out_of_sight="/" if shown == "stranger" else None)
        return seen

    with OnV1("memory", label, limit_in_bytes=96 << 20), OnV1("memory", "stranger", limit_in_bytes=48 << 20):
        artifacts.update(in_a_child(inside))
    truth = json.loads(artifacts[f"fixture/{label}/truth.json"])
    own = artifacts[f"fixture/{label}/proc/{truth['main']}/cgroup"]
    yield "the process sees itself at the top", b":memory:/\n" in own, own
    mounts = artifacts[f"fixture/{label}/proc/self/mountinfo"]
    roots = {"own": b" / ", "host": b" /.. ", "stranger": b" /../stranger "}
    yield "the mount tells which it is", roots[shown] + MEMORY.encode() + b" " in mounts, mounts


@case("fixtures: cgroup v1, a namespace with its own mount")
def namespace_own(artifacts):
    yield from namespace(artifacts, "cgroup-v1-namespace", "own")


@case("fixtures: cgroup v1, a namespace below the host's mount")
def namespace_host(artifacts):
    yield from namespace(artifacts, "cgroup-v1-namespace-host-mount", "host")


@case("fixtures: cgroup v1, a namespace that is shown a stranger's group")
def namespace_stranger(artifacts):
    yield from namespace(artifacts, "cgroup-v1-namespace-stranger", "stranger")


@case("fixtures: cgroup v1, three processes that share memory")
def shared(artifacts):
    fixture = Fixture(artifacts, "cgroup-v1-sharing")
    with OnV1("memory", "sharing", limit_in_bytes=256 << 20):
        yield from shared_pages(fixture, lambda pid: write(f"{MEMORY}/sharing/cgroup.procs", str(pid)))
        fixture.group("memory", MEMORY, "/sharing")
    fixture.truth(**fixture.facts, limits={"/": "unlimited", "/sharing": 256 << 20})
    yield "the group is gone", not os.path.exists(f"{MEMORY}/sharing")
