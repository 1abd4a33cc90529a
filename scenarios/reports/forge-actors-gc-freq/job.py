"""The controller: starts the actors, and sends each batch of rollouts to both"""

import os
import random
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Listener

SECONDS, STEP_S = 32.0, 0.16
ROLLOUTS, LENGTH, VOCAB = 4, 64, 700
GC_FREQ = "100000"


def rollouts(random_):
    rewards = [random_.random() for _ in range(ROLLOUTS)]
    mean = sum(rewards) / ROLLOUTS
    return {
        "ids": [[random_.randrange(VOCAB) for _ in range(LENGTH)] for _ in range(ROLLOUTS)],
        "advantages": [reward - mean for reward in rewards],
    }


def main():
    random_ = random.Random(0)
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        address = os.path.join(folder, "controller")
        with Listener(address, family="AF_UNIX") as listener:
            processes = [
                subprocess.Popen([sys.executable, os.path.join(here, "actors.py"), kind, address, GC_FREQ])
                for kind in ("trainer", "reference")
            ]
            actors = {}
            for _ in processes:
                connection = listener.accept()
                actors[connection.recv()] = connection
        until, step = time.monotonic() + SECONDS, 0
        while time.monotonic() < until:
            batch = rollouts(random_)
            for connection in actors.values():
                connection.send((batch, STEP_S))
            replies = {kind: connection.recv() for kind, connection in actors.items()}
            step += 1
            if step % 25 == 0:
                loss, logprob = replies["trainer"]["loss"], replies["reference"]["logprob"]
                print(f"step {step}: loss {loss:.4f}, reference {logprob:.3f}", flush=True)
        for connection in actors.values():
            connection.send(None)
        for process in processes:
            process.wait()


if __name__ == "__main__":
    main()
