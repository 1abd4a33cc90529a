"""Collects the detections of a data set and computes the average precision per category"""

import numpy as np
from dist import all_gather


class LvisEvaluator:
    def __init__(self, categories, ground_truth):
        self.categories, self.ground_truth = categories, ground_truth
        self.predictions = {}

    def update(self, predictions):
        self.predictions.update(predictions)

    def synchronize_between_processes(self):
        merged = {}
        for predictions in all_gather(self.predictions):
            merged.update(predictions)
        self.predictions = merged

    def summarize(self):
        scores = np.concatenate([one["scores"].numpy() for one in self.predictions.values()])
        labels = np.concatenate([one["labels"].numpy() for one in self.predictions.values()])
        hits = np.concatenate([one["labels"].numpy() == self.ground_truth[n] for n, one in self.predictions.items()])
        found = []
        for category in range(self.categories):
            rows = np.flatnonzero(labels == category)
            ranked = hits[rows[np.argsort(-scores[rows])]]
            if ranked.any():
                precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
                found.append(precision[ranked].mean())
        return float(np.mean(found)) if found else 0.0
