"""The front end of a notebook: runs its cells in a kernel and zooms in the figures that they show"""

import base64
import json
import os
import random
import struct
import subprocess
import sys
import time

SECONDS, LOOK_S = 29.0, 0.35

OPEN = """
recording = load_recording({number})
figure = FigureWidgetResampler(points=1500)
figure.add_trace(recording.seconds, recording.volts)
figure.display()
"""

CLOSE = """
figure.close()
del figure, recording
"""


class KernelClient:
    def __init__(self):
        kernel = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel.py")
        self.process = subprocess.Popen(
            [sys.executable, kernel], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.comms, self.drawn = {}, 0

    def request(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the kernel has died")
            answer = json.loads(line)
            if answer["type"] == "idle":
                return
            self.handle(answer)

    def handle(self, answer):
        if answer["type"] == "error":
            raise RuntimeError(answer["text"])
        if answer["type"] == "comm_close":
            self.comms.pop(answer["comm_id"], None)
            return
        points = base64.b64decode(answer["buffer"])
        heights = struct.unpack(f"<{len(points) // 4}f", points)
        self.comms[answer["comm_id"]] = (min(heights), max(heights))
        self.drawn += len(heights)

    def execute(self, code):
        self.request({"type": "execute_request", "code": code})

    def send(self, comm_id, data):
        self.request({"type": "comm_msg", "comm_id": comm_id, "data": data})

    def shutdown(self):
        self.process.stdin.close()
        return self.process.wait()


def main():
    client, source = KernelClient(), random.Random(2)
    began, number = time.monotonic(), 0
    while time.monotonic() - began < SECONDS:
        client.execute(OPEN.format(number=number))
        (comm_id,) = client.comms
        until = time.monotonic() + LOOK_S
        while time.monotonic() < until:
            start = source.uniform(0.0, 0.8)
            client.send(comm_id, {"range": [start, start + source.uniform(0.05, 0.2)]})
        client.execute(CLOSE)
        number += 1
        if number % 10 == 0:
            print(f"{number} recordings, {client.drawn} points drawn", flush=True)
    return client.shutdown()


if __name__ == "__main__":
    sys.exit(main())
