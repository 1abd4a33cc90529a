"""Fleets of recordings whose first failure is known, because it is drawn here: run.json and verdict.json for each rank or node.

A real recording gives the shapes (`Base`); what a fleet is about is drawn from a seed. Nothing here asks ullage.
"""

import copy
import json
import os
import random

GIB, MIB = 1 << 30, 1 << 20
STARTED = 1_795_600_000.0

# Cause, proof, exception or none for a kill by the kernel, role that fails; the fact, its value on the odd node and on others;
# limit that is met, and how much of it is used.
FAULTS = [
    ("memcg-oom-kill", "kernel-said", None, None, "cgroup.memory.max", 64 * GIB, 96 * GIB, "cgroup memory", 64 * GIB),
    (
        "max-map-count-exhausted",
        "seen-inside",
        "RuntimeError: unable to mmap 320 bytes from file </torch_1_2_3>: Cannot allocate memory (12)",
        "loader worker 2",
        "sysctl.vm.max_map_count",
        65530,
        1048576,
        "mappings",
        65530,
    ),
    (
        "shm-full-bytes",
        "seen-outside",
        "RuntimeError: unable to write to file </torch_7_8_9>: No space left on device (28)",
        "loader worker 1",
        "shm.size",
        64 * MIB,
        8 * GIB,
        "/dev/shm bytes",
        64 * MIB,
    ),
    (
        "nofile-exhausted-shared-tensors",
        "seen-inside",
        "OSError: [Errno 24] Too many open files",
        None,
        "limit.nofile.soft",
        1024,
        1048576,
        "descriptors",
        1024,
    ),
    (
        "pids-limit-cgroup",
        "seen-inside",
        "RuntimeError: can't start new thread",
        None,
        "cgroup.pids.max",
        512,
        32768,
        "cgroup tasks",
        512,
    ),
    ("host-oom-kill", "kernel-said", None, None, "memory.total", 64 * GIB, 256 * GIB, "memory and swap", 63 * GIB),
    (
        "strict-overcommit",
        "seen-inside",
        "MemoryError: Unable to allocate 8.00 GiB",
        None,
        "sysctl.vm.overcommit_memory",
        2,
        0,
        "commit limit",
        60 * GIB,
    ),
]

# Facts that change something elsewhere: each odd node has some of them, and so have healthy ones.
DISTRACTORS = [
    ("sysctl.vm.swappiness", 10),
    ("sysctl.vm.min_free_kbytes", 90112),
    ("thp.defrag", "always"),
    ("sysctl.kernel.numa_balancing", 1),
    ("limit.core.soft", "unlimited"),
    ("sysctl.vm.zone_reclaim_mode", 1),
    ("limit.memlock.soft", 65536),
    ("sysctl.kernel.sem", "250 32000 100 128"),
]

# Facts that belong to the same cause and have nothing to do with it here: an odd node has one of them in half of the fleets.
ALIKE = {
    "memcg-oom-kill": ("cgroup.swap.max", 1 * GIB),
    "max-map-count-exhausted": ("sysctl.vm.overcommit_ratio", 80),
    "shm-full-bytes": ("limit.fsize.soft", 1 << 40),
    "nofile-exhausted-shared-tensors": ("sysctl.fs.nr_open", 2097152),
    "pids-limit-cgroup": ("sysctl.kernel.pid_max", 65536),
    "host-oom-kill": ("swap.total", 4 * GIB),
    "strict-overcommit": ("sysctl.vm.overcommit_kbytes", 4096),
}

# What other ranks report, and how often; none of it is a cause.
ECHOES = [
    (3, {"exception": "torch.distributed.DistBackendError: NCCL error: Watchdog caught collective operation timeout"}),
    (3, {"exception": "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.9]:31337"}),
    (3, {"signal": 15}),
    (1, {"exception": "ConnectionResetError: [Errno 104] Connection reset by peer"}),
]


class Base:
    """A real recording of a healthy run: its run.json, its verdict, its folder."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "run.json")) as file:
            self.run = json.load(file)
        with open(os.path.join(folder, "verdict.json")) as file:
            self.file = json.load(file)


class Fleet:
    """Recordings of one job; `write` writes them. `ranks` 0: one recording a node, with eight ranks in it."""

    def __init__(self, base, folder, seed, nodes=16, ranks=8, job="4711"):
        self.base, self.folder, self.job = base, folder, job
        self.random = random.Random(seed)
        self.nodes, self.ranks = nodes, ranks
        self.clock_error = {}
        self.facts = {}
        self.rows = {}
        self.dropped = set()
        for node in range(nodes):
            self.clock_error[node] = self.random.uniform(0.004, 0.04)
            self.facts[node] = self._facts(node)
        self.offset = {node: self.random.uniform(-1, 1) * self.clock_error[node] for node in range(nodes)}
        for node in range(nodes):
            for rank in self.ranks_of(node):
                self.rows[(node, rank)] = self._healthy(node, rank)

    def ranks_of(self, node):
        return [node * self.ranks + local for local in range(self.ranks)] if self.ranks else [None]

    def name(self, node):
        return f"n{node:03}"

    def _facts(self, node):
        facts = {
            "boot.id": f"boot-{node}-{self.random.random()}",
            "shm.used": self.random.randrange(MIB),
            "tmp.used": self.random.randrange(GIB),
            "cgroup.0.path": f"/slurm/{self.random.randrange(10**6)}",
            "memory.total": 256 * GIB - self.random.randrange(64) * 4096,
        }
        for fault in FAULTS:
            facts.setdefault(fault[4], fault[6])
        # Facts that a healthy node may have too.
        if self.random.random() < 0.05:
            name, value = self.random.choice(DISTRACTORS)
            facts[name] = value
        return facts

    def _healthy(self, node, rank):
        verdict = copy.deepcopy(self.base.file["verdict"])
        draw = self.random
        first = rank == 0 or (rank is None and node == 0)
        peak = int(draw.gauss(20, 1.0) * GIB * (1.4 if first else 1.0))
        verdict.update(
            outcome={"kind": "exit", "code": 0, "signal": None, "by": None},
            healthy=True,
            headline="healthy",
            findings=[],
            first_failure=None,
            limits=[
                limit("mappings", draw.gauss(3000, 150) * (2 if first else 1), 1048576),
                limit("descriptors", draw.gauss(400, 20), 1048576),
                limit("cgroup memory", peak + draw.gauss(2, 0.1) * GIB, 96 * GIB),
                limit("/dev/shm bytes", draw.gauss(8, 0.5) * MIB, 8 * GIB),
            ],
        )
        verdict["memory"]["peak_bytes"] = peak
        verdict["memory"]["by_role"] = [
            {"role": "main", "processes": 1, "bytes": int(peak * 0.5)},
            {"role": "loader worker", "processes": 4, "bytes": int(peak * 0.3 * draw.gauss(1, 0.05))},
        ]
        # Noise with a long tail, as of caches that fill.
        verdict["growth"] = growth("live-python-objects", min(draw.lognormvariate(8, 0.6), 50_000))
        return {"verdict": verdict, "ended": 3600 + draw.gauss(0, 0.3)}

    def fail(self, node, rank, at, words, finding=None, role=None):
        """Lets a recording fail `at` seconds after the start of the job, by true time."""
        row = self.rows[(node, rank)]
        of = rank if rank is not None else node * 8 + self.random.randrange(8)
        process = {"pid": 4242, "start": 77, "role": role or f"rank {of}", "name": "python"}
        failure = {"process": process, "at": at, "exception": None, "signal": None, "code": None, "rank": of}
        failure.update(words)
        signal = failure["signal"]
        if failure["exception"]:
            failure["sentence"] = f"The process raised {failure['exception']}."
        elif signal == 9 and finding:
            failure["sentence"] = "The process was killed by SIGKILL; the kernel's OOM killer sent it."
        else:
            failure["sentence"] = f"The process was killed by signal {signal}."
        code = None if signal else 1
        kind = "signal" if signal else "exit"
        row["verdict"].update(
            first_failure=failure,
            healthy=False,
            headline=finding[0] if finding else "exit 1, no memory cause found",
            outcome={"kind": kind, "code": code, "signal": signal, "by": "sender unknown" if signal else None},
        )
        if finding:
            cause, proof = finding
            row["verdict"]["findings"] = [
                {
                    "cause": cause,
                    "title": f"title of {cause}",
                    "severity": "fatal",
                    "confidence": 0.9,
                    "status": "established",
                    "process": process,
                    "evidence": [],
                    "fixes": [],
                    "why": [],
                    "at": at,
                    "explains": [],
                    "caused_by": [],
                    "proof": proof,
                }
            ]
        row["ended"] = at + self.random.uniform(0.1, 2)
        return of

    def fault(self, node, rank, at, fault):
        """One of FAULTS on this node; the rank that it fails in."""
        cause, proof, exception, role, fact, odd, _, name, used = fault
        self.facts[node][fact] = odd
        for name_of, value in self.random.sample(DISTRACTORS, 3):
            self.facts[node][name_of] = value
        alike, value = ALIKE[cause]
        if self.random.random() < 0.5:
            self.facts[node][alike] = value
        words = {"exception": exception} if exception else {"signal": 9}
        of = self.fail(node, rank, at, words, (cause, proof), role)
        verdict = self.rows[(node, rank)]["verdict"]
        verdict["limits"] = [one for one in verdict["limits"] if one["name"] != name]
        # What rises within a second was never read near its limit.
        if self.random.random() < 0.7:
            verdict["limits"].insert(0, limit(name, used, used if name != "memory and swap" else 64 * GIB))
        return of

    def echo(self, after, but):
        """All others fail of it, except the recordings in `but`."""
        weights = [weight for weight, _ in ECHOES]
        for node, rank in self.rows:
            if (node, rank) in but:
                continue
            words = self.random.choices(ECHOES, weights)[0][1]
            delay = self.random.uniform(0.02, 30)
            # The watchdog of NCCL aborts the process long after, without a word to Python.
            if self.random.random() < 0.1:
                words, delay = {"signal": 6}, self.random.uniform(20, 60)
            self.fail(node, rank, after + delay, words)

    def write(self):
        for (node, rank), row in self.rows.items():
            if (node, rank) in self.dropped:
                continue
            self._write(node, rank, row)
        return self.folder

    def path(self, node, rank):
        of = "-" if rank is None else rank
        return os.path.join(self.folder, f"job={self.job}", f"node={self.name(node)}", f"rank={of}", "attempt=0")

    def _write(self, node, rank, row):
        folder = self.path(node, rank)
        os.makedirs(folder)
        run = copy.deepcopy(self.base.run)
        verdict = row["verdict"]
        name = f"20261125-000000-train-{node}-{rank}"
        # The node's clock is off by its offset, and it started a little later than the others.
        delay = row.get("delay", self.random.uniform(0, 0.5))
        run.update(
            run=name,
            job=self.job,
            node=self.name(node),
            rank=rank,
            node_rank=node,
            started_unix=STARTED + self.offset[node] + delay,
            outcome=None if row.get("torn") else {key: verdict["outcome"][key] for key in ("kind", "code", "signal", "by")},
            duration_s=None if row.get("torn") else row["ended"] - delay,
        )
        size = {"WORLD_SIZE": str(self.nodes * self.ranks), "RANK": str(rank)} if self.ranks else {}
        run["environment"] = {**run["environment"], **size, "SLURM_STEP_NUM_NODES": str(self.nodes)}
        machine = run["machine"]
        others = machine["others"] = {**machine.get("others", {}), **self.facts[node]}
        others["clock.error_s"] = str(round(self.clock_error[node], 6))
        machine["max_map_count"] = {"known": others.pop("sysctl.vm.max_map_count")}
        machine["memory_total"] = {"known": others.pop("memory.total")}
        machine["overcommit_memory"] = {"known": others.pop("sysctl.vm.overcommit_memory")}
        for folder_of, key in (("sysctl.vm", "overcommit_ratio"), ("sysctl.fs", "nr_open"), ("sysctl.kernel", "pid_max")):
            if f"{folder_of}.{key}" in others:
                machine[key] = {"known": others.pop(f"{folder_of}.{key}")}
        with open(os.path.join(folder, "run.json"), "w") as file:
            json.dump(run, file)
        if row.get("tables"):
            for table in os.listdir(self.base.folder):
                if table not in ("run.json", "verdict.json"):
                    os.link(os.path.join(self.base.folder, table), os.path.join(folder, table))
        if row.get("torn") or row.get("unjudged"):
            return
        verdict = copy.deepcopy(verdict)
        verdict["run"] = name
        verdict["duration_s"] = run["duration_s"]
        if verdict["first_failure"]:
            verdict["first_failure"]["at"] -= delay
            for finding in verdict["findings"]:
                finding["at"] = verdict["first_failure"]["at"]
        with open(os.path.join(folder, "verdict.json"), "w") as file:
            json.dump({**self.base.file, "verdict": verdict}, file)


def limit(name, used, most):
    return {
        "name": name,
        "scope": "job",
        "used": int(used),
        "limit": int(most),
        "slope_per_s": 0.0,
        "time_left_s": None,
        "unit": "bytes",
        "headroom": int(most - used),
        "growing_for_s": None,
        "warning": False,
    }


def growth(kind, per_second):
    return {
        "class": kind,
        "because": "It grew.",
        "bytes": int(per_second * 3600),
        "per_second": per_second,
        "since_s": 0.0,
        "share": 1.0,
        "process": None,
        "until": None,
        "parts": [],
        "explained_by": None,
    }
