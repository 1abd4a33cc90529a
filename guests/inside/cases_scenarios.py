"""The cases of all scenario.toml files that need a machine of their own (`needs = ["guest"]`).

Each is proven first by what the kernel says itself, then judged by the verdict of `ullage run` and by the one
of `ullage report` afterwards; and again without the agent, where "no finding" is allowed but another is not.
"""

import glob
import json
import os
import subprocess
import time

import tomllib
from fixture import Fixture
from guest import (
    CGROUPS,
    HAVE_ULLAGE,
    PYTHON,
    Cgroup,
    kernel_log,
    killed_lines,
    new_kernel_lines,
    read,
    report,
    watched,
    write,
)
from registry import case
from verdicts import shape

# What the kernel's log must hold where the fault happened, by expected finding.
MARKERS = {
    "host-oom-kill": "global_oom",
    "memcg-oom-kill": "constraint=CONSTRAINT_MEMCG",
    "invisible-child-oom": "constraint=CONSTRAINT_MEMCG",
    "hugetlb-reserved": "global_oom",
}
# The guest's only disk.
SWAP = "/dev/nvme0n1"
# A job that hangs is a failed case, not a hung guest.
JOB_TIMEOUT = 60


def filled(command, folder):
    return [part.replace("{plain}", PYTHON).replace("{here}", folder) for part in command]


class Setup:
    """The `[case.setup]` table, undone at the end."""

    def __init__(self, name, table, folder):
        self.table, self.group, self.restore = dict(table), None, {}
        self.neighbour, self.beside = filled(self.table.pop("neighbour", []), folder), None
        memory, below = self.table.pop("cgroup_memory", None), self.table.pop("cgroup_below", False)
        high = self.table.pop("cgroup_memory_high", None)
        together = self.table.pop("oom_group", False)
        if memory:
            self.group = Cgroup(name, memory_max=memory, **({"memory_high": high} if high else {}))
            if together:
                write(f"{self.group.path}/memory.oom.group", "1")
            if below:
                self.group.allow_children()
                self.group = Cgroup(f"{name}/below")
        self.sysctls = self.table.pop("sysctl", {})
        self.swap = self.table.pop("swap", False)

    def __enter__(self):
        for name, value in self.sysctls.items():
            path = "/proc/sys/" + name.replace(".", "/")
            self.restore[path] = read(path).strip()
            write(path, str(value))
        if self.swap:
            subprocess.run(["mkswap", SWAP], check=True, capture_output=True)
            subprocess.run(["swapon", SWAP], check=True, capture_output=True)
        if self.neighbour:
            self.beside = subprocess.Popen(self.neighbour)
        return self

    def __exit__(self, *_):
        if self.beside:
            self.beside.kill()
            self.beside.wait()
        if self.swap:
            subprocess.run(["swapoff", SWAP], capture_output=True)
        for path, value in self.restore.items():
            write(path, value)


# Constraint of the kernel's line, by expected finding.
CONSTRAINTS = {
    "host-oom-kill": "host",
    "hugetlb-reserved": "host",
    "memcg-oom-kill": "cgroup",
    "invisible-child-oom": "cgroup",
}


def capture(artifacts, label, group, lines, finding):
    fixture = Fixture(artifacts, label)
    fixture.put("dmesg", "\n".join(lines) + "\n")
    fixture.machine(("vmstat", "meminfo", "self/mountinfo"))
    if group:
        fixture.group("v2", CGROUPS, group.path.removeprefix(CGROUPS))
    constraint = CONSTRAINTS.get(finding)
    fixture.truth(**({"oom": {"constraint": constraint}} if constraint else {}))


def judged(verdict, wanted, agent, by):
    """Checks of one verdict against the `[case.expect]` table or `healthy = true`."""
    seen = shape(verdict)
    if wanted is None:
        yield f"{by}: healthy", verdict["healthy"] is True, seen
        return
    first = verdict["findings"][0] if verdict["findings"] else None
    if first is None and not agent:
        yield f"{by}: without the agent, no finding rather than another", True, seen
        return
    yield f"{by}: first finding is {wanted['finding']}", first and first["cause"] == wanted["finding"], seen
    if first and "status" in wanted and agent:
        yield f"{by}: {' or '.join(wanted['status'])}", first["status"] in wanted["status"], seen
    if first and "role" in wanted:
        yield (
            f"{by}: in {' or '.join(wanted['role'])}",
            (first["process"] or {}).get("role") in wanted["role"],
            first["process"],
        )
    outcome = {key: verdict["outcome"].get(key) for key in wanted.get("outcome", {})}
    yield f"{by}: outcome", outcome == wanted.get("outcome", {}), f"{seen}, wanted {wanted.get('outcome')}"
    causes = [finding["cause"] for finding in verdict["findings"] if finding["severity"] != "note"]
    for cause in wanted.get("also", []):
        yield f"{by}: {cause} is among the findings", cause in causes, seen
    yield f"{by}: not healthy", verdict["healthy"] is False, seen


def run_scenario(folder, about, agent, artifacts):
    name = f"{os.path.basename(folder)}-{about['name']}{'' if agent else '-no-agent'}"
    record, verdict_file = f"/runs/{name}", f"/tmp/{name}.json"
    argv = filled(about["job"], folder)
    wanted = None if about.get("healthy") else about["expect"]
    setup = Setup(name, about.get("setup", {}), folder)
    before = kernel_log()
    with setup:
        ended = watched(
            argv, record, ["--json", verdict_file] + ([] if agent else ["--no-agent"]), JOB_TIMEOUT, cgroup=setup.group
        )
    time.sleep(0.2)
    lines = new_kernel_lines(before)
    if agent and wanted:
        capture(artifacts, name, setup.group, lines, wanted["finding"])
    artifacts["job.txt"] = f"{ended.code}\n{ended.out}{ended.err}"
    artifacts["dmesg.txt"] = "\n".join(lines)
    unknown = set(setup.table)
    yield "the setup is understood", not unknown, unknown
    marker = MARKERS.get(wanted["finding"]) if wanted else None
    if marker:
        yield f"the kernel says {marker}", killed_lines(lines, marker), lines[-3:]
    else:
        yield "the kernel killed nothing", not killed_lines(lines, "Killed process"), lines[-3:]
    if wanted and wanted["finding"] == "strict-overcommit":
        yield (
            "the job met ENOMEM",
            "Cannot allocate memory" in ended.err or "MemoryError" in ended.err,
            ended.err[-300:],
        )
    if not HAVE_ULLAGE:
        return
    if wanted and wanted.get("by_report"):
        yield "ullage was killed with the job", ended.code == -9, ended.code
    else:
        ran = json.loads(read(verdict_file, "null"))
        yield "ullage run wrote a verdict", ran is not None, f"{ended.code} {ended.err[-600:]}"
        if ran is not None:
            artifacts["verdict.json"] = json.dumps(ran, indent=1)
            yield from judged(ran, wanted, agent, "run")
    later = report(record)
    artifacts["report.json"] = json.dumps(later, indent=1)
    yield from judged(later, wanted, agent, "report")


def load():
    for path in sorted(glob.glob("/guest/scenarios/*/scenario.toml")):
        with open(path, "rb") as file:
            cases = tomllib.load(file).get("case", [])
        for about in cases:
            if "guest" not in about.get("needs", []):
                continue
            folder = os.path.dirname(path)
            for agent in (True, False):
                name = f"{os.path.basename(folder)} {about['name']}{'' if agent else ' --no-agent'}"
                case(name, needs_ullage=not agent)(
                    lambda artifacts, folder=folder, about=about, agent=agent: run_scenario(
                        folder, about, agent, artifacts
                    )
                )


load()
