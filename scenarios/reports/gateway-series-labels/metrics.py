"""Counters and histograms with labels, and the registry that renders them for a scrape"""

import bisect
import threading
import time

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 30, 60, 300)


class MutexValue:
    def __init__(self, name, labelnames, labelvalues):
        self.name = name
        self.labels = tuple(zip(labelnames, labelvalues))
        self._value = 0.0
        self._exemplar = None
        self._lock = threading.Lock()

    def inc(self, amount):
        with self._lock:
            self._value += amount

    def get(self):
        with self._lock:
            return self._value


class Metric:
    def __init__(self, name, labelnames, registry, labelvalues=()):
        self.name, self.labelnames, self.labelvalues = name, labelnames, labelvalues
        if labelvalues:
            self._created = time.time()
            self._metric_init()
        else:
            self._lock = threading.Lock()
            self._metrics = {}
            registry.register(self)

    def labels(self, **given):
        values = tuple(str(given[name]) for name in self.labelnames)
        with self._lock:
            if values not in self._metrics:
                self._metrics[values] = type(self)(self.name, self.labelnames, None, values)
            return self._metrics[values]

    def collect(self):
        with self._lock:
            children = list(self._metrics.values())
        for child in children:
            yield f"{child.name}{{{','.join(child.labelvalues)}}} {child.sample()}"


class Counter(Metric):
    def _metric_init(self):
        self._total = MutexValue(self.name + "_total", self.labelnames, self.labelvalues)

    def inc(self, amount=1):
        self._total.inc(amount)

    def sample(self):
        return self._total.get()


class Histogram(Metric):
    def _metric_init(self):
        self._sum = MutexValue(self.name + "_sum", self.labelnames, self.labelvalues)
        names = (*self.labelnames, "le")
        self._buckets = [MutexValue(self.name, names, (*self.labelvalues, str(bound))) for bound in BUCKETS]

    def observe(self, amount):
        self._sum.inc(amount)
        position = bisect.bisect_left(BUCKETS, amount)
        if position < len(self._buckets):
            self._buckets[position].inc(1)

    def sample(self):
        return self._sum.get()


class Registry:
    def __init__(self):
        self._collectors = []

    def register(self, metric):
        self._collectors.append(metric)

    def scrape(self):
        return sum(len(line) for metric in self._collectors for line in metric.collect())
