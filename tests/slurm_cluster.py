"""A real Slurm of two nodes on one machine, out of Debian's packages and without installing them.

    with Cluster(folder) as cluster:
        cluster.srun(["hostname"], nodes=2)

The packages are fetched with apt-get once, into `folder`, and unpacked there. Both slurmd run here, as n1 and n2;
needed are root, apt-get and dpkg. Where they cannot be had, `why_not()` says so.
"""

import getpass
import glob
import os
import shutil
import socket
import subprocess
import time

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "libmunge2", "libhwloc15"]
PORTS = {"SlurmctldPort": 17000, "n1": 17001, "n2": 17002}
WAIT_S = 60  # for failures only

# auth/none and cred/none: one user on one machine. jobacct_gather/linux ends slurmstepd on some kernels.
CONFIG = """\
ClusterName=ullage
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={SlurmctldPort}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
JobAcctGatherType=jobacct_gather/none
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
PluginDir={plugins}
StateSaveLocation={run}/state
SlurmdSpoolDir={run}/spool-%n
SlurmctldPidFile={run}/slurmctld.pid
SlurmdPidFile={run}/slurmd-%n.pid
SlurmctldLogFile={run}/slurmctld.log
SlurmdLogFile={run}/slurmd-%n.log
Epilog={run}/epilog
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{n1}-{n2}] CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


def why_not():
    """Why there can be no cluster here; None where there can."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [tool for tool in ("apt-get", "dpkg-deb") if not shutil.which(tool)]
    return f"there is no {missing[0]}" if missing else None


def fetch(folder):
    """Unpacks Slurm and the libraries that this machine lacks into folder/root, once."""
    root = os.path.join(folder, "root")
    if os.path.exists(os.path.join(root, "usr", "sbin", "slurmctld-wlm")):
        return root
    os.makedirs(root, exist_ok=True)
    asked = ["apt-get", "install", "--print-uris", "-qq", "-y", "--no-install-recommends", *PACKAGES]
    listed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    names = [line.split()[1].split("_")[0] for line in listed.splitlines() if line.startswith("'")]
    download = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", *names]
    subprocess.run(download, cwd=folder, check=True)
    for package in glob.glob(f"{folder}/*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        os.unlink(package)
    return root


class Cluster:
    """Two nodes, n1 and n2; `epilog` is a shell script that runs on each node when a job has ended there."""

    def __init__(self, folder, epilog="exit 0"):
        self.root = fetch(folder)
        self.run = os.path.join(folder, "run")
        shutil.rmtree(self.run, ignore_errors=True)
        os.makedirs(os.path.join(self.run, "state"))
        libraries = os.path.join(self.root, "usr/lib/x86_64-linux-gnu")
        self.environment = {
            **os.environ,
            "SLURM_CONF": os.path.join(self.run, "slurm.conf"),
            "LD_LIBRARY_PATH": f"{libraries}:{libraries}/slurm-wlm:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
            "PATH": f"{self.root}/usr/bin:{self.root}/usr/sbin:{os.environ['PATH']}",
        }
        host = socket.gethostname().split(".")[0]
        values = {**PORTS, "host": host, "user": getpass.getuser(), "run": self.run}
        with open(self.environment["SLURM_CONF"], "w") as file:
            file.write(CONFIG.format(plugins=f"{libraries}/slurm-wlm", **values))
        with open(os.path.join(self.run, "epilog"), "w") as file:
            file.write(f"#!/bin/sh\n{epilog}\n")
        os.chmod(os.path.join(self.run, "epilog"), 0o755)
        self.daemons = []

    def __enter__(self):
        try:
            self.start("slurmctld", "-D", "-i")
            for node in ("n1", "n2"):
                os.makedirs(os.path.join(self.run, f"spool-{node}"), exist_ok=True)
                self.start("slurmd", "-D", "-N", node, "-d", f"{self.root}/usr/sbin/slurmstepd-wlm")
            begin = time.monotonic()
            while self.command("sinfo", "-h", "-t", "idle", "-o", "%D").strip() != "2":
                dead = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
                if dead or time.monotonic() - begin > WAIT_S:
                    ended = ", ".join(dead) or "no daemon"
                    raise RuntimeError(f"the nodes are not idle ({ended} has ended); see {self.run}/*.log")
                time.sleep(0.2)  # sinfo has no event to wait for
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def start(self, name, *words):
        out = open(os.path.join(self.run, f"{name}-{len(self.daemons)}.out"), "w")
        command = [os.path.join(self.root, "usr", "sbin", f"{name}-wlm"), *words]
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=out, stderr=out, cwd=self.run))

    def command(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False).stdout

    def srun(self, command, nodes=2, tasks=1, environment=None):
        """Runs a command once on each of `nodes`, or `tasks` times; CompletedProcess."""
        words = ["srun", "-Q", f"-N{nodes}", f"--ntasks-per-node={tasks}", "--kill-on-bad-exit=0", "--wait=0", *command]
        more = {**self.environment, **(environment or {})}
        # What the daemons' libraries need is nothing for the job: srun hands its environment on.
        return subprocess.run(words, env=more, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    import sys
    import tempfile

    with Cluster(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()) as cluster:
        done = cluster.srun(["sh", "-c", "echo $SLURMD_NODENAME $SLURM_JOB_ID $SLURM_PROCID"])
        print(done.stdout, done.stderr, done.returncode)
