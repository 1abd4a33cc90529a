"""Benchmark of synthesizers for single tables, with a time limit for each"""

import itertools
import multiprocessing
import time

import numpy as np

TIMEOUT = 4.0
context = multiprocessing.get_context("fork")


def load_dataset(name, rows):
    rng = np.random.default_rng(len(name))
    mixing = rng.standard_normal((14, 14))
    return rng.standard_normal((rows, 14)) @ mixing + rng.integers(0, 5, (rows, 1))


class GaussianCopulaSynthesizer:
    def fit(self, data):
        self.mean, self.covariance = data.mean(0), np.cov(data.T)

    def sample(self, rows):
        return np.random.default_rng(0).multivariate_normal(self.mean, self.covariance, rows)


class KernelSynthesizer:
    """Draws rows, and adds noise of a width that it searches for."""

    def fit(self, data):
        self.data = data[:1500]
        best = None
        for width in np.linspace(0.05, 1.0, 12):
            distance = ((self.data[:400, None] - self.data[None, 400:1200]) ** 2).sum(-1)
            likelihood = np.log(np.exp(-distance / (2 * width**2 * 14)).mean(1) + 1e-12).mean()
            if best is None or likelihood > best[0]:
                best = likelihood, width
        self.width = best[1]

    def sample(self, rows):
        rng = np.random.default_rng(1)
        picked = self.data[rng.integers(0, len(self.data), rows)]
        return picked + rng.standard_normal(picked.shape) * self.width


def nearest_distances(real, synthetic):
    """The distance of each synthetic row to its nearest real row."""
    nearest, norms = np.empty(len(synthetic)), (real**2).sum(1)
    for start in range(0, len(synthetic), 50):
        part = synthetic[start:start + 50]
        squares = (part**2).sum(1)[:, None] + norms - 2 * part @ real.T
        nearest[start:start + 50] = np.sqrt(np.maximum(squares.min(1), 0))
    return nearest


def run_job(output, synthesizer, data):
    started = time.monotonic()
    synthesizer.fit(data)
    output["Train_Time"] = time.monotonic() - started
    started = time.monotonic()
    synthetic = synthesizer.sample(len(data))
    output["Sample_Time"] = time.monotonic() - started
    gap = np.abs(np.corrcoef(data.T) - np.corrcoef(synthetic.T)).mean()
    privacy = nearest_distances(data, synthetic).mean()
    output["Quality_Score"] = float(1 - gap)
    output["Privacy_Score"] = float(privacy)


def score_with_timeout(synthesizer, name, data):
    with context.Manager() as manager:
        output = manager.dict()
        process = context.Process(target=run_job, args=(output, synthesizer, data))
        process.start()
        process.join(TIMEOUT)
        if process.is_alive():
            print(f"Timeout running {type(synthesizer).__name__} on dataset {name};", flush=True)
            process.terminate()
            process.join()
        return {"Synthesizer": type(synthesizer).__name__, "Dataset": name, **output.copy()}


def main():
    sizes = {"adult": 48_000, "alarm": 20_000, "asia": 1500, "child": 1800}
    results = []
    for name, synthesizer in itertools.product(sizes, (GaussianCopulaSynthesizer, KernelSynthesizer)):
        results.append(score_with_timeout(synthesizer(), name, load_dataset(name, sizes[name])))
    columns = ("Synthesizer", "Dataset", "Train_Time", "Sample_Time", "Quality_Score", "Privacy_Score")
    table = {column: [result[column] for result in results] for column in columns}
    for row in zip(*table.values()):
        print(*row, sep="\t", flush=True)


if __name__ == "__main__":
    main()
