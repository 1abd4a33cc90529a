"""The worker: runs tasks, and keeps their results in memory up to a target and on disk above it"""

import collections
import json
import os
import sys
import time

import numpy as np

SIDE, COMPUTE_S = 1024, 0.22


class SpillBuffer:
    def __init__(self, folder, target):
        self.folder = folder
        self.target = target
        self.fast = collections.OrderedDict()
        self.slow = set()
        self.weight = 0

    def path(self, key):
        return os.path.join(self.folder, f"{key}.npy")

    def __setitem__(self, key, value):
        self.fast[key] = value
        self.weight += value.nbytes
        while self.weight > self.target and len(self.fast) > 1:
            oldest, evicted = self.fast.popitem(last=False)
            self.weight -= evicted.nbytes
            np.save(self.path(oldest), evicted)
            self.slow.add(oldest)

    def __getitem__(self, key):
        if key in self.fast:
            self.fast.move_to_end(key)
            return self.fast[key]
        self.slow.remove(key)
        value = np.load(self.path(key))
        os.remove(self.path(key))
        self[key] = value
        return value

    def __delitem__(self, key):
        if key in self.fast:
            self.weight -= self.fast.pop(key).nbytes
        else:
            self.slow.remove(key)
            os.remove(self.path(key))


class Worker:
    def __init__(self, folder, target):
        self.data = SpillBuffer(folder, target)

    def compute(self, key, seed):
        generator = np.random.default_rng(seed)
        field = generator.standard_normal((SIDE, SIDE))
        started = time.monotonic()
        while time.monotonic() - started < COMPUTE_S:
            field += 0.1 * (np.roll(field, 1, axis=0) + np.roll(field, -1, axis=1) - 2 * field)
        self.data[key] = field
        return {"in_memory": len(self.data.fast), "spilled": len(self.data.slow)}

    def anomaly(self, key, reference):
        difference = self.data[key] - self.data[reference]
        return {"anomaly": float(np.abs(difference).mean())}

    def release(self, key):
        del self.data[key]
        return {"released": key}


def main():
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        message = json.loads(line)
        answer = getattr(worker, message.pop("op"))(**message)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
