"""What the script uses of a tracker: a sweep's agent runs each configuration in a thread of its own"""

import itertools
import threading
import traceback


class Agent:
    def __init__(self, parameters, function, flapping=5):
        names = list(parameters)
        self.runs = [dict(zip(names, values)) for values in itertools.product(*parameters.values())]
        self.function, self.flapping = function, flapping

    def run(self):
        failed = 0
        for number, config in enumerate(self.runs, 1):
            errors = []
            thread = threading.Thread(target=self._job, args=(number, config, errors), name=f"run-{number}")
            thread.start()
            thread.join()
            failed = failed + 1 if errors else 0
            if errors:
                print(f"run {number} failed: {errors[0]}", flush=True)
            if failed == self.flapping:
                print(f"{failed} failed runs in a row, the sweep is ended", flush=True)
                return 1
        return 0

    def _job(self, number, config, errors):
        try:
            self.function(number, config)
        except Exception as error:
            traceback.print_exc(limit=3)
            errors.append(f"{type(error).__name__}: {error}")
