"""Collectors put their metrics into one queue; the handlers' process takes them and sends them on to graphite"""

import argparse
import multiprocessing
import queue
import socket
import time

import numpy as np

STARTED = time.monotonic()
LAST_S = 27.0
context = multiprocessing.get_context("fork")


def running():
    return time.monotonic() - STARTED < LAST_S


class GraphiteHandler:
    """Sends plain text lines, and reads one byte of acknowledgement from the relay."""

    def __init__(self, port, timeout=0.8):
        self.port, self.timeout = port, timeout
        self.sent = self.failed = 0

    def process(self, metrics):
        lines = "".join(f"{m['path']} {m['value']:.6f} {int(m['timestamp'])}\n" for m in metrics[:200])
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=self.timeout) as connection:
                connection.sendall(lines.encode())
                connection.recv(1)
            self.sent += 1
        except OSError:
            self.failed += 1


class Collector:
    def __init__(self, name, devices, interval, seed):
        self.name, self.devices, self.interval = name, devices, interval
        self.generator = np.random.default_rng(seed)

    def collect(self):
        now = time.time()
        latency = self.generator.gamma(2.0, 3.0, (self.devices, 64))
        quantiles = np.percentile(latency, [50, 75, 90, 95, 99], axis=1)
        metrics = []
        for device in range(self.devices):
            for row, label in enumerate(("median", "p75", "p90", "p95", "p99")):
                metrics.append({
                    "path": f"servers.node07.{self.name}.device{device:04d}.await_{label}",
                    "value": float(quantiles[row, device]),
                    "raw": float(latency[device, row]),
                    "timestamp": now + device * 1e-6,
                    "host": "node07",
                    "ttl": 120,
                })
        return metrics

    def run(self, metric_queue, stop):
        while running() and not stop.is_set():
            metric_queue.put(self.collect())
            stop.wait(self.interval)


def handle(metric_queue, port):
    handler = GraphiteHandler(port)
    while running():
        try:
            metrics = metric_queue.get(timeout=1.0)
        except queue.Empty:
            continue
        handler.process(metrics)
        if (handler.sent + handler.failed) % 10 == 0:
            print(f"graphite: {handler.sent} sent, {handler.failed} failed", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--interval", type=float, default=0.1)
    interval = parser.parse_args().interval
    relay = socket.create_server(("127.0.0.1", 0), backlog=4)
    with context.Manager() as manager:
        metric_queue = manager.Queue()
        stop = context.Event()
        collectors = [
            Collector(name, 200, interval, seed)
            for seed, name in enumerate(("iostat", "diskusage", "network"))
        ]
        processes = [context.Process(target=c.run, args=(metric_queue, stop), name=c.name) for c in collectors]
        processes.append(
            context.Process(target=handle, args=(metric_queue, relay.getsockname()[1]), name="handlers")
        )
        for process in processes:
            process.start()
        for process in processes:
            process.join(LAST_S + 5)
        print(f"{metric_queue.qsize()} batches were not handled", flush=True)
    relay.close()


if __name__ == "__main__":
    main()
