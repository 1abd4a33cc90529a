"""A kernel: runs cells in a namespace, and hands messages of the front end to the widgets that they are for"""

import json
import sys
import traceback

import numpy as np
import widgets

SAMPLES = 600_000


class Recording:
    def __init__(self, seconds, volts):
        self.seconds, self.volts = seconds, volts


def load_recording(number):
    source = np.random.default_rng(number)
    volts = source.standard_normal(SAMPLES, dtype=np.float32)
    np.cumsum(volts, out=volts)
    return Recording(np.arange(SAMPLES) / 1000.0, volts)


class Shell:
    def __init__(self):
        self.user_ns = {"load_recording": load_recording, "FigureWidgetResampler": widgets.FigureWidgetResampler}
        self.execution_count = 0

    def run_cell(self, code):
        self.execution_count += 1
        exec(compile(code, f"<cell {self.execution_count}>", "exec"), self.user_ns)


def main():
    shell = Shell()
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if message["type"] == "execute_request":
                shell.run_cell(message["code"])
            else:
                widgets.Widget.widgets[message["comm_id"]].handle_msg(message["data"])
        except Exception:
            widgets.publish({"type": "error", "text": traceback.format_exc()})
        widgets.publish({"type": "idle"})


if __name__ == "__main__":
    main()
