"""Spectral features of recordings, computed in parallel, and a model that is fitted to them"""

import multiprocessing
import time

import numpy as np

from parallel import Parallel, delayed

SECONDS, TASK_S, FIT_S = 36.0, 0.25, 0.8
JOBS, RECORDINGS, SAMPLES, WINDOW, BANDS = 4, 12, 2_400_000, 1024, 32


def features(number):
    """The mean power of a recording in each band, estimated again and again for the time of a task"""
    generator = np.random.default_rng(number)
    signal = generator.standard_normal(SAMPLES, dtype=np.float32)
    signal += np.sin(np.arange(SAMPLES, dtype=np.float32) * (0.01 + 0.01 * (number % 7)))
    windows = signal[: SAMPLES // WINDOW * WINDOW].reshape(-1, WINDOW) * np.hanning(WINDOW).astype(np.float32)
    until, estimates = time.monotonic() + TASK_S, []
    while True:
        power = np.square(np.abs(np.fft.rfft(windows)[:, 1:])).mean(0)
        estimates.append(power.reshape(BANDS, -1).mean(1))
        if time.monotonic() > until:
            return number % 7, np.mean(estimates, axis=0)


def fit(rows, labels, weights, until):
    """Logistic regression, which goes on from the last weights for the time of a fit"""
    inputs = np.log(rows + 1e-9)
    inputs = (inputs - inputs.mean(0)) / (inputs.std(0) + 1e-9)
    wanted = np.eye(7)[labels]
    while True:
        scores = inputs @ weights
        scores = np.exp(scores - scores.max(1, keepdims=True))
        scores /= scores.sum(1, keepdims=True)
        weights = weights - 0.1 * inputs.T @ (scores - wanted) / len(inputs)
        if time.monotonic() > until:
            return weights, float(-(wanted * np.log(scores + 1e-12)).sum(1).mean())


def main():
    started, call = time.monotonic(), 0
    weights = np.zeros((BANDS, 7))
    while time.monotonic() - started < SECONDS:
        parallel = Parallel(n_jobs=JOBS)
        results = parallel(delayed(features)(call * RECORDINGS + one) for one in range(RECORDINGS))
        parallel._terminate_backend()
        labels, rows = np.array([label for label, _ in results]), np.stack([row for _, row in results])
        weights, loss = fit(rows, labels, weights, time.monotonic() + FIT_S)
        call += 1
        if call % 4 == 0:
            active = len(multiprocessing.active_children())
            print(f"call {call}: loss {loss:.3f}, {active} active children", flush=True)
    print(f"{call} calls", flush=True)


if __name__ == "__main__":
    main()
