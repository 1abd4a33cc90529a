"""Logs an array in each step, to a handler that keeps so many records: `log.py STEPS RECORDS`."""

import logging
import logging.handlers
import sys
import time

import numpy


def train(steps, records):
    handler = logging.handlers.MemoryHandler(records, logging.CRITICAL, logging.NullHandler())
    log = logging.getLogger("train")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(handler)
    for step in range(steps):
        for layer in range(8):
            log.info("step %d, layer %d: %s", step, layer, numpy.full(1 << 17, step % 255, numpy.uint8))
        time.sleep(0.05)


train(int(sys.argv[1]), int(sys.argv[2]))
