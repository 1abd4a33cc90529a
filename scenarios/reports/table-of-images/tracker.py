"""Runs of an experiment, and the values that can be logged to them"""

import hashlib
import json
import os
import time

import numpy as np


class Image:
    """A picture as a value of a run"""

    def __init__(self, data, caption=None):
        if data.dtype != np.uint8:
            data = (data * 255.0).clip(0, 255).astype(np.uint8)
        self._image = np.ascontiguousarray(data)
        self._caption = caption
        self.format = "png"
        self.height, self.width = data.shape[:2]

    def to_json(self):
        return {
            "_type": "image-file",
            "sha256": hashlib.sha256(self._image.tobytes()).hexdigest(),
            "size": [self.height, self.width],
            "caption": self._caption,
        }


class Table:
    def __init__(self, columns):
        self.columns = list(columns)
        self.data = []

    def add_data(self, *data):
        if len(data) != len(self.columns):
            raise ValueError(f"This table expects {len(self.columns)} columns: {self.columns}, found {len(data)}")
        self.data.append(list(data))

    def to_json(self):
        rows = [[one.to_json() if isinstance(one, Image) else one for one in row] for row in self.data]
        return {"_type": "table-file", "columns": self.columns, "ncols": len(self.columns), "data": rows}


class Run:
    def __init__(self, folder, name):
        self.name = name
        self.path = os.path.join(folder, f"{name}.jsonl")
        self.step = 0

    def log(self, values):
        entry = {"_step": self.step, "_timestamp": time.time()}
        for key, value in values.items():
            entry[key] = value.to_json() if isinstance(value, (Image, Table)) else value
        with open(self.path, "a") as file:
            file.write(json.dumps(entry) + "\n")
        self.step += 1

    def finish(self):
        return os.path.getsize(self.path)
