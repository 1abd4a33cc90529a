"""Traces of an application: spans of running traces, and a buffer of finished ones for whoever wants to look at them"""

import collections
import threading
import time
import uuid

MAX_SIZE, TTL_S = 1000, 9.0


class TTLCache:
    """Entries leave when they are too old, and the oldest ones when there are too many"""

    def __init__(self, maxsize, ttl):
        self.maxsize, self.ttl = maxsize, ttl
        self.entries = collections.OrderedDict()

    def expire(self):
        oldest = time.monotonic() - self.ttl
        while self.entries:
            key, (added, _) = next(iter(self.entries.items()))
            if added > oldest:
                return
            del self.entries[key]

    def __setitem__(self, key, value):
        self.expire()
        while len(self.entries) >= self.maxsize:
            self.entries.popitem(last=False)
        self.entries[key] = (time.monotonic(), value)

    def __getitem__(self, key):
        return self.entries[key][1]

    def pop(self, key):
        return self.entries.pop(key)[1]

    def __len__(self):
        return len(self.entries)

    def last(self):
        return next(reversed(self.entries.values()))[1]


class Trace:
    def __init__(self, name):
        self.request_id, self.name = uuid.uuid4().hex, name
        self.started, self.duration = time.monotonic(), None
        self.spans = []


class Span:
    def __init__(self, name, inputs, outputs):
        self.name, self.inputs, self.outputs = name, inputs, outputs


class TraceManager:
    def __init__(self):
        self.lock = threading.Lock()
        self.running = TTLCache(MAX_SIZE, TTL_S)
        self.buffer = TTLCache(MAX_SIZE, TTL_S)

    def start_trace(self, name):
        trace = Trace(name)
        with self.lock:
            self.running[trace.request_id] = trace
        return trace.request_id

    def add_span(self, request_id, span):
        with self.lock:
            self.running[request_id].spans.append(span)

    def end_trace(self, request_id):
        with self.lock:
            trace = self.running.pop(request_id)
            trace.duration = time.monotonic() - trace.started
            self.buffer[request_id] = trace

    def get_last_trace(self):
        with self.lock:
            return self.buffer.last()
