"""The default logger callbacks: a file for each trial while it runs"""

import csv
import json
import os


def plain(values):
    return {key: value for key, value in values.items() if isinstance(value, (int, float, str))}


class JsonLoggerCallback:
    def __init__(self, logdir):
        self.logdir = logdir
        self._trial_configs = {}
        self._trial_files = {}

    def log_trial_start(self, trial):
        self.update_config(trial, trial.config)
        self._trial_files[trial] = open(os.path.join(self.logdir, f"result_{trial.trial_id}.json"), "a")

    def update_config(self, trial, config):
        self._trial_configs[trial] = config
        with open(os.path.join(self.logdir, f"params_{trial.trial_id}.json"), "w") as file:
            json.dump(plain(config), file)

    def log_trial_result(self, trial, result):
        json.dump({**plain(result), "config": plain(self._trial_configs[trial])}, self._trial_files[trial])
        self._trial_files[trial].write("\n")

    def log_trial_end(self, trial, failed=False):
        self._trial_files[trial].close()
        del self._trial_files[trial]


class CSVLoggerCallback:
    def __init__(self, logdir):
        self.logdir = logdir
        self._trial_continue = {}
        self._trial_files = {}

    def log_trial_start(self, trial):
        path = os.path.join(self.logdir, f"progress_{trial.trial_id}.csv")
        self._trial_continue[trial] = os.path.exists(path)
        self._trial_files[trial] = open(path, "a", newline="")

    def log_trial_result(self, trial, result):
        row = plain(result)
        writer = csv.DictWriter(self._trial_files[trial], list(row))
        if not self._trial_continue[trial]:
            writer.writeheader()
            self._trial_continue[trial] = True
        writer.writerow(row)

    def log_trial_end(self, trial, failed=False):
        self._trial_files[trial].close()
        del self._trial_files[trial]
