"""An experiment tracker, as its client library is: each row goes to a file and to the run's history."""

import json
import time


class History:
    def __init__(self, path):
        self.file = open(path, "a")
        self.rows = []
        self.row = {}

    def add(self, row):
        self.row.update(row)
        self.row["_timestamp"] = time.time()
        self.row["_step"] = len(self.rows)
        self.rows.append(self.row)
        self.file.write(json.dumps({key: float(value) for key, value in self.row.items()}) + "\n")
        self.row = {}


class Run:
    def __init__(self, path="run.jsonl"):
        self.history = History(path)
        self.summary = {}

    def log(self, row):
        self.history.add(row)
        self.summary.update(row)

    def finish(self):
        self.history.file.close()
        return {key: float(value) for key, value in self.summary.items()}
