"""Tracks objects in a field of sensors: a Kalman updater remembers the newest predictions of measurements."""

import functools
import time

import numpy as np

SECONDS = 26.0
STATE, SENSORS = 220, 160


class StateVector:
    def __init__(self, timestamp, mean, covariance):
        self.timestamp, self.mean, self.covariance = timestamp, mean, covariance


class LinearGaussian:
    def __init__(self, rng):
        self.matrix = rng.normal(size=(SENSORS, STATE)) / np.sqrt(STATE)
        self.noise = np.eye(SENSORS) * 0.4


class KalmanPredictor:
    def __init__(self, rng):
        self.transition = np.eye(STATE) * 0.97 + rng.normal(size=(STATE, STATE)) * 0.002
        self.noise = np.eye(STATE) * 0.05

    def predict(self, prior, timestamp):
        mean = self.transition @ prior.mean
        return StateVector(timestamp, mean, self.transition @ prior.covariance @ self.transition.T + self.noise)


class KalmanUpdater:
    def __init__(self, model):
        self.model = model

    @functools.lru_cache(maxsize=256)
    def predict_measurement(self, predicted_state):
        h = self.model.matrix
        cross = predicted_state.covariance @ h.T
        return h @ predicted_state.mean, h @ cross + self.model.noise, cross

    def distance(self, predicted_state, detection):
        mean, innovation, _ = self.predict_measurement(predicted_state)
        difference = detection - mean
        return float(difference @ np.linalg.solve(innovation, difference))

    def update(self, predicted_state, detection):
        mean, innovation, cross = self.predict_measurement(predicted_state)
        gain = np.linalg.solve(innovation, cross.T).T
        posterior = predicted_state.covariance - gain @ cross.T
        return StateVector(
            predicted_state.timestamp, predicted_state.mean + gain @ (detection - mean), (posterior + posterior.T) / 2
        )


def main():
    rng = np.random.default_rng(4)
    predictor, updater = KalmanPredictor(rng), KalmanUpdater(LinearGaussian(rng))
    truths = rng.normal(size=(4, STATE))
    tracks = [StateVector(0, truth + rng.normal(size=STATE), np.eye(STATE)) for truth in truths]
    end, timestamp = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        timestamp += 1
        truths = truths @ predictor.transition.T
        detections = truths @ updater.model.matrix.T + rng.normal(0, 0.6, (len(truths), SENSORS))
        for number, track in enumerate(tracks):
            prediction = predictor.predict(track, timestamp)
            distances = [updater.distance(prediction, detection) for detection in detections]
            tracks[number] = updater.update(prediction, detections[int(np.argmin(distances))])
        if timestamp % 25 == 0:
            errors = [np.abs(track.mean - truth).mean() for track, truth in zip(tracks, truths)]
            print(f"t {timestamp}: mean error {np.mean(errors):.4f}", flush=True)


if __name__ == "__main__":
    main()
