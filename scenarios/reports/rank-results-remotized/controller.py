"""The controller of a training: starts the ranks, calls each method on all of them, and passes results on by name"""

import concurrent.futures
import http.client
import json
import os
import socket
import subprocess
import sys
import time

WORLD_SIZE, STEPS, STEP_S = 2, 38, 0.6


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def post(address, path, request):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("POST", path, json.dumps(request))
    result = json.loads(connection.getresponse().read())
    connection.close()
    return result


class Worker:
    def __init__(self, rank, environment):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
        environment = {**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        self.process = subprocess.Popen([sys.executable, script], env=environment, stdout=subprocess.PIPE)

    def wait_started(self):
        started = json.loads(self.process.stdout.readline())
        self.address, self.head = started["address"], started["head"]


class TrainController:
    def __init__(self):
        environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        environment["WORLD_SIZE"] = str(WORLD_SIZE)
        self.workers = [Worker(rank, environment) for rank in range(WORLD_SIZE)]
        for worker in self.workers:
            worker.wait_started()
        self.executor = concurrent.futures.ThreadPoolExecutor(WORLD_SIZE)

    def call(self, method, **arguments):
        calls = [self.executor.submit(post, worker.address, f"/{method}", arguments) for worker in self.workers]
        return self._collect_results([call.result() for call in calls])

    def _collect_results(self, results):
        """Tensor parallel ranks have the same result: one for each data parallel group is enough"""
        return [result for worker, result in zip(self.workers, results) if worker.head][0]

    def clear_batches(self, *results):
        """Frees the shards of these results, on the workers that have them"""
        shards = {}
        for result in results:
            for part in [result] if "shard_id" in result else result.values():
                shards.setdefault(part["node_addr"], []).append(part["shard_id"])
        for address, shard_ids in shards.items():
            post(address, "/data/clear", {"shard_ids": shard_ids})

    def close(self):
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.wait()


def main():
    controller = TrainController()
    for step in range(STEPS):
        until, updates = time.monotonic() + STEP_S, 0
        batch = controller.call("prepare_batch", step=step)
        logp = controller.call("compute_logp", batch=batch)
        while updates == 0 or time.monotonic() < until:
            stats = controller.call("ppo_update", batch=batch, logp=logp)
            updates += 1
        controller.clear_batches(batch, logp)
        if step % 5 == 0:
            print(f"step {step}: {updates} updates, loss {stats['loss']:.4f}, reward {stats['reward']:.3f}", flush=True)
    controller.close()


if __name__ == "__main__":
    main()
