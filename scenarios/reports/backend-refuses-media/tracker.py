"""The part of the experiment tracker that runs in the training process"""

import collections
import http.client
import json
import os
import sys
import threading
import time


class Reporter(threading.Thread):
    """Sends events in batches; what could not be sent is tried again"""

    def __init__(self, host, flush_s=1.0, batch=24):
        super().__init__(name="reporter", daemon=True)
        self.host, self.flush_s, self.batch = host, flush_s, batch
        self.events = {"scalar": collections.deque(), "media": collections.deque()}
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.failures = 0

    def add(self, kind, event):
        with self.lock:
            self.events[kind].append(event)

    def run(self):
        while not self.stopped.wait(self.flush_s):
            for kind in self.events:
                self.flush(kind)

    def flush(self, kind):
        with self.lock:
            waiting = self.events[kind]
            events = [waiting.popleft() for _ in range(min(self.batch, len(waiting)))]
        if events and not self.send(kind, events):
            with self.lock:
                self.events[kind].extendleft(reversed(events))
            self.failures += 1
            if self.failures % 5 == 1:
                print(f"Retrying, failed logging task to backend ({len(events)} lines)", file=sys.stderr, flush=True)

    def send(self, kind, events):
        body = b"".join(json.dumps(head).encode() + b"\n" + blob for head, blob in events)
        connection = http.client.HTTPConnection(self.host, timeout=5)
        try:
            connection.request("POST", f"/events.add_batch/{kind}", body=body)
            response = connection.getresponse()
            response.read()
            return response.status == 200
        except OSError:
            return False
        finally:
            connection.close()


class Task:
    def __init__(self, project, name):
        self.head = {"project": project, "task": name}
        self.reporter = Reporter(os.environ["API_HOST"])
        self.reporter.start()

    def report_scalar(self, title, value, iteration):
        event = {**self.head, "title": title, "value": value, "iteration": iteration, "at": time.time()}
        self.reporter.add("scalar", (event, b""))

    def report_image(self, title, image, iteration):
        event = {**self.head, "title": title, "shape": list(image.shape), "iteration": iteration, "at": time.time()}
        self.reporter.add("media", (event, image.tobytes()))

    def close(self):
        self.reporter.stopped.set()
        self.reporter.join(timeout=5)
