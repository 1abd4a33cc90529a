"""The agent of a sweep: asks for a configuration, runs the function with it in a thread, and reports"""

import random
import threading
import time


class Agent:
    def __init__(self, function, space, seed):
        self._function = function
        self._space = space
        self._random = random.Random(seed)
        self._exceptions = {}
        self._finished = {}

    def _draw(self):
        return {name: self._random.choice(values) for name, values in sorted(self._space.items())}

    def _run_job(self, number, config):
        try:
            self._finished[number] = self._function(config)
        except Exception as error:
            self._exceptions[number] = error

    def run(self, seconds):
        started, number = time.monotonic(), 0
        while time.monotonic() - started < seconds:
            config = self._draw()
            thread = threading.Thread(target=self._run_job, args=(number, config), name=f"run-{number}")
            thread.start()
            thread.join()
            if number % 10 == 0:
                outcome = self._exceptions.get(number) or f"loss {self._finished[number]:.3f}"
                print(f"run {number}: {config}: {outcome}", flush=True)
            number += 1
        return number, {one: str(error) for one, error in self._exceptions.items()}
