"""Search over the designs of an antenna: two objectives, many short trials, results logged as JSON and CSV"""

import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

import numpy as np
from trial_loggers import CSVLoggerCallback, JsonLoggerCallback

SECONDS = 27.0
SIDE = 220


class Trial:
    def __init__(self, number, config):
        self.trial_id = f"{number:05d}"
        self.config = config
        self.status = "PENDING"
        self.last_result = {}
        self.metric_analysis = {}

    def update_last_result(self, result):
        self.last_result = result
        for name in ("gain", "loss"):
            value = result[name]
            found = self.metric_analysis.setdefault(name, {"max": value, "min": value})
            found["max"], found["min"] = max(found["max"], value), min(found["min"], value)


class Searcher:
    def __init__(self):
        self.generator = np.random.default_rng(7)
        self.best, self.best_gain = None, -np.inf

    def suggest(self):
        phase = self.generator.standard_normal((SIDE, SIDE))
        if self.best is not None:
            phase = 0.7 * self.best + 0.3 * phase
        return {"phase": phase, "rate": float(10 ** self.generator.uniform(-3, -1)), "steps": 24}

    def on_trial_complete(self, trial):
        if trial.last_result["gain"] > self.best_gain:
            self.best_gain = trial.last_result["gain"]
            self.best = trial.last_result["pattern"].copy()


def evaluate(config):
    phase = config["phase"]
    for _ in range(config["steps"]):
        field = np.fft.fftshift(np.fft.fft2(np.exp(1j * phase), s=(256, 256)))
        power = np.abs(field) ** 2
        power /= power.sum()
        back = np.fft.ifft2(np.fft.ifftshift(np.sqrt(power) * np.exp(1j * np.angle(field))))[:SIDE, :SIDE]
        phase = phase + config["rate"] * (np.angle(back) - phase)
    centre = power[120:136, 120:136].sum()
    return {"gain": float(centre), "loss": float(power.std()), "pattern": phase}


def main():
    searcher = Searcher()
    callbacks = [JsonLoggerCallback("."), CSVLoggerCallback(".")]
    started, number, running = time.monotonic(), 0, {}
    with ProcessPoolExecutor(2) as actors:
        while True:
            while len(running) < 3 and time.monotonic() - started < SECONDS:
                number += 1
                trial = Trial(number, searcher.suggest())
                for callback in callbacks:
                    callback.log_trial_start(trial)
                trial.status = "RUNNING"
                running[actors.submit(evaluate, trial.config)] = trial
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                trial = running.pop(future)
                trial.update_last_result(future.result())
                for callback in callbacks:
                    callback.log_trial_result(trial, trial.last_result)
                    callback.log_trial_end(trial)
                searcher.on_trial_complete(trial)
                trial.status = "TERMINATED"
            if number % 40 == 0:
                print(f"{number} trials, best gain {searcher.best_gain:.5f}", flush=True)
    print(f"{number} trials", flush=True)


if __name__ == "__main__":
    main()
