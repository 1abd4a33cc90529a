"""A step: one process generates events, and then forked streams reconstruct them with the same conditions"""

import argparse
import multiprocessing
import multiprocessing.connection
import signal
import time

import numpy as np

RECORDS, ROWS, COLUMNS = 12, 2000, 4096
STREAMS = 3


class Conditions:
    """The alignment and calibration of the detector for a run"""

    def __init__(self):
        source = np.random.default_rng(12)
        self.records = [source.standard_normal((ROWS, COLUMNS), dtype=np.float32) for _ in range(RECORDS)]

    def block(self, number):
        row = number * 37 % (ROWS - 64)
        return self.records[number % RECORDS][row : row + 64]


def generate(conditions, number):
    spectrum = np.fft.rfft(conditions.block(number), axis=1)
    return float(np.abs(spectrum).mean())


def reconstruct(conditions, number, source):
    block = conditions.block(number)
    hits = source.standard_normal(block.shape, dtype=np.float32)
    return float(np.linalg.svd(hits @ block.T, compute_uv=False)[0])


def stream(conditions, index, until, results):
    source, number, energy = np.random.default_rng(index), index, 0.0
    while time.monotonic() < until:
        energy += reconstruct(conditions, number, source)
        number += STREAMS
    results.send((index, number // STREAMS, energy))
    results.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--generate", type=float, required=True)
    parser.add_argument("--reconstruct", type=float, required=True)
    arguments = parser.parse_args()
    stopping = []
    signal.signal(signal.SIGUSR2, lambda *_: stopping.append(True))
    conditions = Conditions()
    print(f"{RECORDS} records of conditions are loaded", flush=True)
    began, number, energy = time.monotonic(), 0, 0.0
    while time.monotonic() - began < arguments.generate and not stopping:
        energy += generate(conditions, number)
        number += 1
        if number % 1000 == 0:
            print(f"Begin processing the {number}th record", flush=True)
    print(f"{number} events generated, {STREAMS} streams reconstruct them", flush=True)
    context = multiprocessing.get_context("fork")
    until, streams, waiting = time.monotonic() + arguments.reconstruct, [], []
    for index in range(STREAMS):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=stream, args=(conditions, index, until, sender))
        process.start()
        sender.close()
        streams.append(process)
        waiting.append(receiver)
    while waiting and not stopping:
        for receiver in multiprocessing.connection.wait(waiting, timeout=1.0):
            index, events, _ = receiver.recv()
            print(f"stream {index}: {events} events", flush=True)
            waiting.remove(receiver)
    for process in streams:
        process.join()


if __name__ == "__main__":
    main()
