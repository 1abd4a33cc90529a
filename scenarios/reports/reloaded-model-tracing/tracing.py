"""Traces of the tracking client: a provider with a processor that exports finished spans in batches"""

import collections
import functools
import json
import threading


class BatchSpanProcessor:
    """Collects spans, and a thread of its own writes them in batches"""

    def __init__(self, path, max_queue_size=2048, schedule_delay=5.0, max_export_batch_size=512):
        self.path = path
        self.queue = collections.deque([], max_queue_size)
        self.schedule_delay, self.max_export_batch_size = schedule_delay, max_export_batch_size
        self.condition = threading.Condition()
        self.done = False
        self.worker_thread = threading.Thread(target=self.worker, name="OtelBatchSpanRecordProcessor", daemon=True)
        self.worker_thread.start()

    def on_end(self, span):
        self.queue.appendleft(span)
        if len(self.queue) >= self.max_export_batch_size:
            with self.condition:
                self.condition.notify()

    def worker(self):
        while not self.done:
            with self.condition:
                self.condition.wait(self.schedule_delay)
            self.export()
        self.export()

    def export(self):
        spans = []
        while self.queue:
            spans.append(self.queue.pop())
        if spans:
            with open(self.path, "a") as file:
                file.writelines([json.dumps(span) + "\n" for span in spans])

    def shutdown(self):
        self.done = True
        with self.condition:
            self.condition.notify_all()
        self.worker_thread.join()


class TracerProvider:
    def __init__(self, path):
        self.processor = BatchSpanProcessor(path)

    def record(self, name, **attributes):
        self.processor.on_end({"name": name, **attributes})


class NoOpTracerProvider:
    def record(self, name, **attributes):
        pass


class ProviderWrapper:
    def __init__(self):
        self.provider, self.initialized = None, False

    def set(self, provider):
        self.provider, self.initialized = provider, True

    def get(self):
        if not self.initialized:
            self.set(TracerProvider("traces.jsonl"))
        return self.provider

    def reset(self):
        self.initialized = False


provider = ProviderWrapper()


def is_tracing_enabled():
    return not provider.initialized or isinstance(provider.provider, TracerProvider)


def disable():
    if is_tracing_enabled():
        provider.set(NoOpTracerProvider())


def enable():
    if not isinstance(provider.provider, TracerProvider) or not provider.initialized:
        provider.set(TracerProvider("traces.jsonl"))


def set_experiment(name):
    provider.reset()
    return name


def trace_disabled(function):
    """For functions of the client itself, which are not to be traced"""

    @functools.wraps(function)
    def wrapped(*arguments, **options):
        if not is_tracing_enabled():
            return function(*arguments, **options)
        disable()
        try:
            return function(*arguments, **options)
        finally:
            enable()

    return wrapped
