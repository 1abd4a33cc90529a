"""A random search in the way of hyperopt, as far as hyperas uses it"""

import random

STATUS_OK, STATUS_FAIL = "ok", "fail"


class Choice:
    def __init__(self, label, options):
        self.label, self.options = label, options

    def draw(self, source):
        return source.choice(self.options)


class Uniform:
    def __init__(self, label, low, high):
        self.label, self.low, self.high = label, low, high

    def draw(self, source):
        return source.uniform(self.low, self.high)


class Trials:
    """The documents of all trials of a search."""

    def __init__(self):
        self._trials = []

    def insert_trial_doc(self, doc):
        self._trials.append(doc)

    @property
    def trials(self):
        return list(self._trials)

    def losses(self):
        return [doc["result"].get("loss") for doc in self._trials]

    @property
    def best_trial(self):
        done = [doc for doc in self._trials if doc["result"]["status"] == STATUS_OK]
        return min(done, key=lambda doc: doc["result"]["loss"])


def fmin(objective, space, max_evals, trials, seed=0):
    source = random.Random(seed)
    for tid in range(max_evals):
        values = {dimension.label: dimension.draw(source) for dimension in space}
        result = objective(**values)
        trials.insert_trial_doc({"tid": tid, "misc": {"vals": values}, "result": result})
    return trials.best_trial["misc"]["vals"]
