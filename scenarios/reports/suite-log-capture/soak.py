"""The tests of an online learner: quick ones, and one that lets it run for a while on a stream."""

import logging
import sys
import time

import numpy as np
from runner import Session

SECONDS = 20.0
logger = logging.getLogger("learner")


class OnlineLearner:
    def __init__(self, features=192, rate=0.05):
        self.weights, self.rate = np.zeros(features), rate

    def observe(self, rows, target):
        error = rows @ self.weights - target
        gradient = rows.T @ error / len(error)
        self.weights = self.weights - self.rate * gradient
        loss = float(np.mean(error**2))
        logger.debug("batch of %d rows", len(rows))
        logger.debug("residual %.4f to %.4f", error.min(), error.max())
        logger.debug("gradient norm %.5f, rate %.3f", np.sqrt(gradient @ gradient), self.rate)
        logger.debug("loss %.5f", loss)
        return loss


class Stream:
    def __init__(self, features=192):
        self.rng = np.random.default_rng(11)
        self.truth = self.rng.normal(size=features)

    def batches(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            rows = self.rng.normal(size=(48, len(self.truth)))
            yield rows, rows @ self.truth + self.rng.normal(0, 0.1, 48)


def test_starts_at_zero():
    assert not OnlineLearner().weights.any()


def test_learns_a_little():
    learner, stream = OnlineLearner(), Stream()
    losses = [learner.observe(*batch) for batch in stream.batches(1.0)]
    assert losses[-1] < losses[0]


def test_soak():
    learner, stream = OnlineLearner(), Stream()
    for number, batch in enumerate(stream.batches(SECONDS)):
        loss = learner.observe(*batch)
        if number % 2000 == 0:
            print(f"batch {number} loss {loss:.4f}", flush=True)
        assert np.isfinite(loss)


if __name__ == "__main__":
    sys.exit(0 if Session([test_starts_at_zero, test_learns_a_little, test_soak]).run() else 1)
