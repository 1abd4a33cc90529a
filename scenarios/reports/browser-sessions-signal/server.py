"""Runs the script of a data app for each page that a browser has open"""

import asyncio
import itertools
import json
import signal
import sys
import time
import zlib

import numpy as np

ROWS, COLUMNS, SCRIPT_S, POINTS = 240_000, 8, 0.16, 600


class Signal:
    """Tells its receivers when something happens"""

    def __init__(self):
        self.receivers = {}

    def connect(self, receiver):
        self.receivers[id(receiver)] = receiver

    def disconnect(self, receiver):
        self.receivers.pop(id(receiver), None)

    def send(self, *arguments):
        for receiver in list(self.receivers.values()):
            receiver(*arguments)


class ReportSession:
    def __init__(self, number, app, source_changed):
        self.number = number
        self.app = app
        self.source_changed = source_changed
        self.state = {}
        self.elements = []
        self.stale = False
        self.source_changed.connect(self.on_source_changed)

    def on_source_changed(self, path):
        self.stale = True

    def rerun(self, widgets):
        """Runs the script from its top; the elements of the page, encoded"""
        self.elements = []
        self.app(self, widgets)
        self.stale = False
        return [zlib.compress(json.dumps(element).encode(), 1) for element in self.elements]

    def shutdown(self):
        self.source_changed.disconnect(self.on_source_changed)


class App:
    """The script: rows between two quantiles, smoothed and drawn"""

    def __init__(self):
        self.table = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)

    def __call__(self, session, widgets):
        until = time.monotonic() + SCRIPT_S
        column = widgets["column"]
        low, high = np.quantile(self.table[:, column], [widgets["from"], widgets["from"] + 0.3])
        inside = (self.table[:, column] >= low) & (self.table[:, column] <= high)
        selected = self.table[inside]
        smooth = np.cumsum(selected, axis=0, dtype=np.float64)
        while time.monotonic() < until:
            smooth[1:-1] += 0.25 * (smooth[:-2] + smooth[2:] - 2.0 * smooth[1:-1])
        session.state["selection"] = selected
        session.elements.append({"type": "metric", "label": "rows", "value": len(selected)})
        step = len(smooth) // POINTS
        for one in range(COLUMNS):
            session.elements.append({"type": "line_chart", "column": one, "points": smooth[::step, one].tolist()})


class Server:
    def __init__(self, app):
        self.app = app
        self.source_changed = Signal()
        self.sessions = {}
        self.numbers = itertools.count(1)

    async def handle(self, reader, writer):
        session = ReportSession(next(self.numbers), self.app, self.source_changed)
        self.sessions[session.number] = session
        try:
            while line := await reader.readline():
                deltas = await asyncio.to_thread(session.rerun, json.loads(line))
                for delta in deltas:
                    writer.write(len(delta).to_bytes(4, "big") + delta)
                writer.write(bytes(4))
                await writer.drain()
        finally:
            session.shutdown()
            del self.sessions[session.number]
            writer.close()
        if session.number % 25 == 0:
            print(f"session {session.number} is closed, {len(self.sessions)} are open", flush=True)


async def serve(announcement):
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = Server(App())
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    with open(announcement, "w") as file:
        file.write(f"{listener.sockets[0].getsockname()[1]}\n")
    await stop.wait()
    listener.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
