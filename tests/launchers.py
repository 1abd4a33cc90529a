#!/usr/bin/env python3
"""The same fault in one rank of a job of two nodes: does `ullage fleet` name the same first rank under each launcher?

    tests/launchers.py --ullage PATH --python PYTHON [--only torchrun,slurm] [--faults cgroup,leak,mappings,shm] [-v]

- torchrun: a node is a network namespace with a host name and a /dev/shm of its own, and torchrun runs in each.
- slurm: a real Slurm of two nodes out of Debian's packages (slurm_cluster.py); srun starts the ranks, a recording each.

Stock torch in each, gloo between the ranks. Needs root. Prints a row a case, how many ran, and what could not run here.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "scenarios"))

import slurm_cluster  # noqa: E402
import surroundings  # noqa: E402

JOB = os.path.join(HERE, "launched_job.py")
ENTER = os.path.join(os.path.dirname(HERE), "scenarios", "enter.py")
RANK = 2  # the first of the second node
WITHIN_S = 240

# The first finding of the fleet's first rank must be one of these.
EXPECTED = {
    "cgroup": {"memcg-oom-kill"},
    "leak": {"accumulate-metrics-outputs"},
    "mappings": {"max-map-count-exhausted"},
    "shm": {"shm-full-bytes"},
}
LIMITS = {"cgroup": 700 << 20, "leak": 1 << 30}


def node_shell(node, fault, command):
    """The command inside what makes a node: a /dev/shm of its own, which is small where it is to fill up."""
    size = "64m" if fault == "shm" and node == 1 else "1g"
    setup = {"tmpfs": [{"path": "/dev/shm", "options": f"size={size}"}]}
    return [sys.executable, ENTER, json.dumps(setup), *command]


@contextlib.contextmanager
def cgroup(fault):
    """A memory cgroup that the faulty rank enters; none where the fault needs none."""
    if fault not in LIMITS:
        yield {}
        return
    folders = surroundings.make_cgroup("memory", LIMITS[fault])
    try:
        yield {"LAUNCHED_CGROUP": folders[-1]}
    finally:
        surroundings.remove_cgroups(folders)


@contextlib.contextmanager
def two_hosts():
    """Names of two network namespaces that reach each other, and the address of the first."""
    names = [f"ullage-{os.getpid()}-{n}" for n in range(2)]
    links = [f"ul{os.getpid() % 10000}n{n}" for n in range(2)]

    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", links[0], "type", "veth", "peer", "name", links[1])
        for n, (name, link) in enumerate(zip(names, links)):
            ip("link", "set", link, "netns", name)
            ip("-n", name, "addr", "add", f"10.213.7.{n + 1}/24", "dev", link)
            ip("-n", name, "link", "set", link, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names, links, "10.213.7.1"
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def by_torchrun(args, fault, fleet, scratch):
    with two_hosts() as (hosts, links, address), cgroup(fault) as more:
        nodes = []
        for node, (host, link) in enumerate(zip(hosts, links)):
            place = [f"--master_addr={address}", "--master_port=29400", f"--node_rank={node}"]
            torchrun = [args.python, "-m", "torch.distributed.run", "--nnodes=2", "--nproc_per_node=2", *place]
            torchrun += [JOB, "--fault", fault]
            ullage = [args.ullage, "run", "-q", "--fleet", fleet, "--", *torchrun, "--rank", str(RANK)]
            own = {"ULLAGE_HOME": f"{scratch}/home-{node}", "GLOO_SOCKET_IFNAME": link}
            environment = {**os.environ, **more, **own}
            named = ["unshare", "--uts", "sh", "-c", f'hostname n{node + 1} && exec "$@"', "sh"]
            # Not `ip netns exec`: that hides /sys/fs/cgroup.
            command = ["nsenter", f"--net=/run/netns/{host}", *named, *node_shell(node, fault, ullage)]
            nodes.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        return [node.communicate(timeout=WITHIN_S)[1].decode(errors="replace") for node in nodes]


def by_slurm(args, fault, fleet, scratch):
    with slurm_cluster.Cluster(args.slurm) as cluster, cgroup(fault) as more:
        job = [args.python, JOB, "--fault", fault, "--rank", str(RANK)]
        ullage = [args.ullage, "run", "-q", "--fleet", fleet, "--", *job]
        environment = {**more, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29411", "ULLAGE_HOME": f"{scratch}/home"}
        node = " ".join(["exec", *map(quoted, node_shell(0, fault, ullage))])
        other = " ".join(["exec", *map(quoted, node_shell(1, fault, ullage))])
        script = f'if [ "$SLURM_NODEID" = 1 ]; then {other}; else {node}; fi'
        return [cluster.srun(["sh", "-c", script], nodes=2, tasks=2, environment=environment).stderr]


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


LAUNCHERS = {"torchrun": by_torchrun, "slurm": by_slurm}


def first_of(args, fleet):
    """(rank, cause) of who was first, as `ullage fleet --json` says."""
    said = subprocess.run([args.ullage, "fleet", "--json", fleet], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        return None, said.stderr.strip()
    first = json.loads(said.stdout)["first"]
    if not first or not first["determined"]:
        return None, first and f"one of {len(first['candidates'])}"
    (candidate,) = first["candidates"]
    return candidate["rank"], candidate["cause"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ullage", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--only", default=",".join(LAUNCHERS))
    parser.add_argument("--faults", default=",".join(EXPECTED))
    parser.add_argument("--slurm", default=os.path.join(HERE, "..", "target", "slurm"), help="folder for Slurm")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what the jobs said of a case that fails")
    args = parser.parse_args()
    args.ullage, args.python, args.slurm = map(os.path.abspath, (args.ullage, args.python, args.slurm))
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("0 cases: needs root and ip (iproute2)")
        return 0
    ran = failed = 0
    for launcher in args.only.split(","):
        why_not = slurm_cluster.why_not() if launcher == "slurm" else None
        if why_not:
            print(f"{launcher}: not here, {why_not}")
            continue
        for fault in args.faults.split(","):
            with tempfile.TemporaryDirectory() as scratch:
                said = LAUNCHERS[launcher](args, fault, f"{scratch}/fleet", scratch)
                rank, cause = first_of(args, f"{scratch}/fleet")
                right = rank == RANK and cause in EXPECTED[fault]
                ran, failed = ran + 1, failed + (not right)
                print(f"{'ok' if right else 'WRONG':6} {launcher:9} {fault:9} first: rank {rank}, {cause}", flush=True)
                if not right and args.verbose:
                    print("\n".join(text[-3000:] for text in said))
                    subprocess.run([args.ullage, "fleet", f"{scratch}/fleet"], check=False)
    print(f"{ran} cases, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
