"""A study: asks for parameters, runs trials in a number of jobs, and keeps their values"""

import concurrent.futures
import random
import threading
import time


class Trial:
    def __init__(self, number, generator):
        self.number = number
        self.params = {}
        self._generator = generator

    def suggest_float(self, name, low, high):
        return self.params.setdefault(name, self._generator.uniform(low, high))

    def suggest_categorical(self, name, choices):
        return self.params.setdefault(name, self._generator.choice(choices))


class Study:
    def __init__(self, seed):
        self._seed = seed
        self._lock = threading.Lock()
        self._next = 0
        self.values = []

    def _reseed_and_optimize(self, objective, end):
        while time.monotonic() < end:
            with self._lock:
                number, self._next = self._next, self._next + 1
            trial = Trial(number, random.Random(self._seed + number))
            value = objective(trial)
            with self._lock:
                self.values.append((number, value, trial.params))
                if len(self.values) % 5 == 0:
                    print(f"{len(self.values)} trials, best {min(one[1] for one in self.values):.4f}", flush=True)

    def optimize(self, objective, timeout, n_jobs):
        end = time.monotonic() + timeout
        with concurrent.futures.ThreadPoolExecutor(n_jobs) as executor:
            jobs = [executor.submit(self._reseed_and_optimize, objective, end) for _ in range(n_jobs)]
            for job in jobs:
                job.result()
