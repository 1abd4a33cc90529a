"""The tracer of a chain's runs: a callback handler that turns runs into traces and spans and sends them"""

import json
import os
import queue
import threading
import time
import uuid


class Streamer:
    """Sends messages from a thread of its own"""

    def __init__(self):
        self.messages = queue.Queue(maxsize=100)
        self.sent = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def put(self, message):
        self.messages.put(message)

    def run(self):
        with open(os.devnull, "wb") as backend:
            while (message := self.messages.get()) is not None:
                backend.write(json.dumps(message).encode())
                self.sent += 1

    def end(self):
        self.messages.put(None)
        self.thread.join()


class TraceData:
    def __init__(self, name, input):
        self.id, self.name, self.input = uuid.uuid4().hex, name, input
        self.start_time, self.end_time, self.output = time.time(), None, None

    def as_parameters(self):
        return {"type": "trace", "id": self.id, "name": self.name, "input": self.input, "output": self.output}


class SpanData:
    def __init__(self, trace, parent, name, input):
        self.id, self.trace, self.parent = uuid.uuid4().hex, trace, parent
        self.name, self.input, self.output = name, input, None
        self.start_time, self.end_time = time.time(), None

    def as_parameters(self):
        span = {"type": "span", "id": self.id, "trace": self.trace, "parent": self.parent, "name": self.name}
        return {**span, "input": self.input, "output": self.output}


class OpikTracer:
    def __init__(self, streamer):
        self._streamer = streamer
        self._span_data_map = {}
        self._created_traces_data_map = {}
        self._created_traces = []

    def on_run_start(self, run, parent, name, input):
        if parent is None:
            trace = TraceData(name, input)
            self._created_traces_data_map[run] = trace
            self._created_traces.append(trace)
            span = SpanData(trace.id, None, name, input)
        else:
            trace = self._created_traces_data_map[parent]
            self._created_traces_data_map[run] = trace
            span = SpanData(trace.id, self._span_data_map[parent].id, name, input)
        self._span_data_map[run] = span

    def on_run_end(self, run, parent, output):
        span = self._span_data_map[run]
        span.output, span.end_time = output, time.time()
        self._streamer.put(span.as_parameters())
        if parent is None:
            trace = self._created_traces_data_map[run]
            trace.output, trace.end_time = output, span.end_time
            self._streamer.put(trace.as_parameters())

    def created_traces(self):
        return len(self._created_traces)
