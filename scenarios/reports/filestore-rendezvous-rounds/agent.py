"""An elastic agent: each change of the membership ends a round, and the groups meet again at a new store"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import torch.distributed as dist

HERE = os.path.dirname(os.path.abspath(__file__))


def create_file_store(parameters):
    path = parameters.get("endpoint")
    if not path:
        try:
            _, path = tempfile.mkstemp(prefix="rdzv-")
        except OSError as error:
            raise RuntimeError("The file creation for C10d store has failed.") from error
    return dist.FileStore(path, parameters["world_size"]), path


class Rendezvous:
    def __init__(self, group, world_size):
        self.group, self.world_size, self.round = group, world_size, 0

    def next_rendezvous(self):
        self.round += 1
        store, path = create_file_store({"world_size": self.world_size})
        store.set("round", str(self.round))
        store.set("group", self.group)
        return store, path


class LocalElasticAgent:
    def __init__(self, groups, seconds):
        self.rendezvous = [Rendezvous(f"group{number}", groups) for number in range(groups)]
        self.ends = time.monotonic() + seconds
        self.restarts = 0

    def start_workers(self):
        workers = []
        for rank, rendezvous in enumerate(self.rendezvous):
            store, path = rendezvous.next_rendezvous()
            environment = dict(os.environ, RANK=str(rank), ROUND=store.get("round").decode(), STORE=path)
            workers.append(subprocess.Popen([sys.executable, os.path.join(HERE, "worker.py")], env=environment))
        return workers

    def run(self):
        while time.monotonic() < self.ends:
            workers = self.start_workers()
            states = [worker.wait() for worker in workers]
            if any(states):
                raise RuntimeError(f"workers failed: {states}")
            for name in os.listdir(os.environ["TMPDIR"]):
                if name.startswith("rdzv-"):
                    os.unlink(os.path.join(os.environ["TMPDIR"], name))
            self.restarts += 1
            if self.restarts % 10 == 0:
                print(f"membership changed, {self.restarts} restarts", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1.0)
    arguments = parser.parse_args()
    LocalElasticAgent(arguments.groups, arguments.minutes * 60).run()


if __name__ == "__main__":
    main()
