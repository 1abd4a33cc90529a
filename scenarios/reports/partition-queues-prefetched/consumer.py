"""Polls the messages of a topic one by one, and scores the readings in each"""

import json
import os
import subprocess
import sys
import time

import numpy as np

from client import Consumer

SECONDS, SCORE_S, PARTITIONS = 38.0, 0.05, 12
SETTINGS = {"queued.max.messages.kbytes": 8 << 10, "fetch.message.max.bytes": 1 << 20}


def score(message, weights, until):
    """How far the readings are from their smooth course, for the time of a message"""
    readings = np.asarray(json.loads(message)["readings"], np.float64)
    course = readings.copy()
    while True:
        course = np.convolve(course, weights, mode="same")
        if time.monotonic() > until:
            return float(np.abs(readings - course).mean())


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "broker.py")
    broker = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    consumer = Consumer(int(broker.stdout.readline()), PARTITIONS, SETTINGS)
    weights = np.hanning(9) / np.hanning(9).sum()
    started, polled = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        until = time.monotonic() + SCORE_S
        value = score(consumer.poll(), weights, until)
        polled += 1
        if polled % 60 == 0:
            print(f"{polled} messages, {value:.0f}, {consumer.queued() >> 20} MiB are queued", flush=True)
    consumer.close()
    broker.wait()
    print(f"{polled} messages", flush=True)


if __name__ == "__main__":
    main()
