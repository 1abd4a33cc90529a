"""Widgets of a notebook: their state in the kernel, and the comm to their view in the front end"""

import base64
import itertools
import json
import sys

import numpy as np

numbers = itertools.count(1)


def publish(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Signal:
    def __init__(self):
        self._slots = []

    def connect(self, slot):
        self._slots.append(slot)
        return slot

    def emit(self, *values):
        for slot in list(self._slots):
            slot(*values)


class FileContents:
    """The source of a front-end module, which can be edited while the kernel runs"""

    def __init__(self, text):
        self.text, self.changed = text, Signal()

    def replace(self, text):
        self.text = text
        self.changed.emit(text)


class Comm:
    def __init__(self, kind):
        self.comm_id = f"{kind}-{next(numbers)}"

    def send(self, buffer):
        publish({"type": "comm_msg", "comm_id": self.comm_id, "buffer": base64.b64encode(buffer).decode()})

    def close(self):
        publish({"type": "comm_close", "comm_id": self.comm_id})


class Widget:
    widgets = {}
    _esm = FileContents("export default { render({ model, el }) { draw(model, el); } };")

    def __init__(self):
        self.comm = Comm(type(self).__name__)
        self.module = self._esm.text
        Widget.widgets[self.comm.comm_id] = self
        self._esm.changed.connect(lambda text: self.reload(text))

    def reload(self, text):
        self.module = text
        self.display()

    def display(self):
        raise NotImplementedError

    def close(self):
        if self.comm is not None:
            Widget.widgets.pop(self.comm.comm_id, None)
            self.comm.close()
            self.comm = None


class FigureWidgetResampler(Widget):
    """A figure that sends the front end as many points as it can show of its traces"""

    def __init__(self, points):
        super().__init__()
        self.points, self.traces = points, []

    def add_trace(self, x, y):
        self.traces.append({"x": x, "y": y})

    def display(self):
        self.update(0.0, 1.0)

    def handle_msg(self, data):
        self.update(*data["range"])

    def update(self, start, end):
        if self.comm is None:
            return
        for trace in self.traces:
            span = trace["x"][-1] - trace["x"][0]
            first, last = np.searchsorted(trace["x"], [trace["x"][0] + start * span, trace["x"][0] + end * span])
            self.comm.send(self.resample(trace["y"][first:last]).astype("<f4").tobytes())

    def resample(self, values):
        """The lowest and the highest value of each of as many parts as there are points"""
        width = max(1, len(values) // self.points)
        parts = values[: len(values) // width * width].reshape(-1, width)
        return np.stack([parts.min(axis=1), parts.max(axis=1)], axis=1).ravel()
