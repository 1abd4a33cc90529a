"""Polls the interfaces of all devices in rounds: a scheduler, and a pool of threads with the database"""

import os
import queue
import socket
import subprocess
import sys
import threading
import time

import numpy as np

import orm

DEVICES, THREADS, SECONDS = 20, 10, 38.0
INTERFACES = 2500
TICK_S, JOBS_A_TICK = 0.2, 5


class Worker(threading.Thread):
    def __init__(self, number, jobs, port):
        super().__init__(name=f"db-{number}", daemon=True)
        self.jobs = jobs
        self.port = port

    def run(self):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            answers = connection.makefile("rb")
            while (job := self.jobs.get()) is not None:
                device, poll = job
                connection.sendall(f"{device} {poll}\n".encode())
                counters = np.frombuffer(answers.read(16 * INTERFACES), dtype=np.int64).reshape(2, INTERFACES)
                save(device, counters)
                self.jobs.task_done()


def save(device, counters):
    total = counters.sum(0).astype(np.float64)
    smooth = np.convolve(total, np.hanning(31) / np.hanning(31).sum(), mode="same")
    load = total / np.maximum(smooth, 1.0)
    rows = []
    for index, (octets_in, octets_out, share) in enumerate(zip(*counters.tolist(), load.tolist())):
        name = f"GigabitEthernet{index % 8}/{index % 4}/{index}"
        alias = f"uplink to room {index % 97:03d} of building {index % 7}, patch panel {index:05d}"
        rows.append((device, index, name, alias, octets_in, octets_out, share))
    orm.Interface.bulk_replace(rows)
    orm.Interface.busiest(device)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    devices = subprocess.Popen([sys.executable, os.path.join(here, "devices.py")], stdout=subprocess.PIPE, text=True)
    port = int(devices.stdout.readline())
    orm.migrate()
    jobs = queue.Queue(maxsize=THREADS)
    workers = [Worker(number, jobs, port) for number in range(THREADS)]
    for worker in workers:
        worker.start()
    started, sent, stopping = time.monotonic(), 0, threading.Event()
    while time.monotonic() - started < SECONDS:
        for _ in range(JOBS_A_TICK):
            jobs.put((sent % DEVICES, sent // DEVICES))
            sent += 1
        if sent % 100 == 0:
            print(f"{sent} jobs, {sent // DEVICES} rounds", flush=True)
        stopping.wait(TICK_S)
    jobs.join()
    for _ in workers:
        jobs.put(None)
    for worker in workers:
        worker.join()
    devices.terminate()
    devices.wait()
    print(f"{sent} jobs done", flush=True)


if __name__ == "__main__":
    main()
