"""A grid search with cross validation over the settings of a small classifier"""

import argparse
import itertools
import time

import numpy as np
import torch

from memmapping import Parallel, delayed

torch.set_num_threads(1)
ROWS, COLUMNS, CLASSES = 50_000, 48, 5
FIT_S = 1.1
GRID = {
    "rate": [0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005],
    "decay": [0.0, 1e-5, 1e-4, 1e-3, 1e-2],
    "hidden": [16, 32, 64, 96, 128],
}


def make_data():
    generator = np.random.default_rng(11)
    labels = generator.integers(0, CLASSES, ROWS)
    centres = generator.standard_normal((CLASSES, COLUMNS), dtype=np.float32)
    return centres[labels] + 2 * generator.standard_normal((ROWS, COLUMNS), dtype=np.float32), labels


def folds(count):
    numbers = np.random.default_rng(3).permutation(ROWS)
    for test in np.array_split(numbers, count):
        mask = np.ones(ROWS, dtype=bool)
        mask[test] = False
        yield np.flatnonzero(mask), np.sort(test)


def fit_and_score(train, train_labels, test, test_labels, settings):
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(COLUMNS, settings["hidden"]), torch.nn.ReLU(), torch.nn.Linear(settings["hidden"], CLASSES)
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=settings["rate"], weight_decay=settings["decay"])
    started, start = time.monotonic(), 0
    while time.monotonic() - started < FIT_S:
        batch = torch.from_numpy(np.array(train[start : start + 512]))
        labels = torch.from_numpy(train_labels[start : start + 512])
        loss = torch.nn.functional.cross_entropy(network(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        start = (start + 512) % (len(train) - 512)
    with torch.no_grad():
        predicted = network(torch.from_numpy(np.array(test))).argmax(1).numpy()
    return float((predicted == test_labels).mean())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n-jobs", type=int, required=True)
    parser.add_argument("--cv", type=int, required=True)
    options = parser.parse_args()
    data, labels = make_data()
    candidates = [dict(zip(GRID, values)) for values in itertools.product(*GRID.values())]
    print(f"Fitting {options.cv} folds for each of {len(candidates)} candidates", flush=True)
    scores = Parallel(n_jobs=options.n_jobs)(
        delayed(fit_and_score)(data[train], labels[train], data[test], labels[test], settings)
        for settings in candidates
        for train, test in folds(options.cv)
    )
    means = np.array(scores).reshape(len(candidates), options.cv).mean(1)
    best = int(means.argmax())
    print(f"best {means[best]:.3f} with {candidates[best]}", flush=True)


if __name__ == "__main__":
    main()
