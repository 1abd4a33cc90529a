"""Polls the loudspeakers of a house, and keeps their states and a log of all that it does"""

import json
import logging
import logging.handlers
import os
import threading
import time

from store import StateStore

SECONDS, ROUND_S = 28.0, 0.1
DEVICES, STATE = 40, 48_000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class JsonFormatter(logging.Formatter):
    def format(self, record):
        fields = {"at": record.created, "level": record.levelname, "message": record.getMessage()}
        return json.dumps({**fields, **getattr(record, "fields", {})})


def make_log():
    handler = logging.handlers.RotatingFileHandler("service.json", maxBytes=10_000_000, backupCount=3)
    handler.setFormatter(JsonFormatter())
    log = logging.getLogger("service")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(handler)
    return log


def report(stopped, log):
    while not stopped.wait(4.0):
        log.info("memory", extra={"fields": {"rss": resident()}})
        print(f"diagnostics: resident {resident() / 2**20:.1f} MiB", flush=True)


def poll(number):
    """Stands in for the answers of the devices"""
    return [(f"speaker-{device}", time.time(), os.urandom(STATE)) for device in range(number % 2, DEVICES, 2)]


def main():
    store, log, stopped = StateStore("states.db"), make_log(), threading.Event()
    reports = threading.Thread(target=report, args=(stopped, log))
    reports.start()
    end, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        rows = poll(number)
        store.add(rows)
        for device, at, state in rows:
            log.info("state of %s", device, extra={"fields": {"at": at, "head": state[:2000].hex()}})
        latest = store.latest(DEVICES)
        number += 1
        if number % 50 == 0:
            print(f"round {number}: {store.count()} states, last of {latest[0][0]}", flush=True)
        time.sleep(ROUND_S)
    stopped.set()
    reports.join()
    store.close()


if __name__ == "__main__":
    main()
