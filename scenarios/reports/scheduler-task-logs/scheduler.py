"""The scheduler: has the DAG files processed again and again, two at a time, and writes its own log beside theirs"""

import hashlib
import logging
import os
import sys
import tempfile
import time

from processor import process_file

SECONDS, PROCESSES, FILE_S = 28.0, 2, 0.5
DAGS = ("ingest_orders", "daily_features", "retrain_ranker", "export_reports", "clean_staging", "embed_documents")


def process_round(folder, number, log):
    """Forks a process for each DAG file and waits for all of them"""
    waiting, running, bad = list(DAGS), {}, 0
    while waiting or running:
        while waiting and len(running) < PROCESSES:
            name = waiting.pop(0)
            child = os.fork()
            if not child:
                process_file(folder, name, number, FILE_S)
            running[child] = name
        child, status = os.wait()
        bad += status != 0
        log.info("%s was processed by %d with status %d", running.pop(child), child, status)
    return bad


def heartbeat(folder, log):
    """The size of all logs, and a check of the newest"""
    count, size, newest = 0, 0, None
    for path, _, names in os.walk(folder):
        for name in names:
            newest = os.path.join(path, name)
            count += 1
            size += os.path.getsize(newest)
    with open(newest, "rb") as file:
        digest = hashlib.file_digest(file, "sha1").hexdigest()
    log.info("heartbeat: %d logs, %d bytes, newest %s", count, size, digest)
    return count, size


def main():
    with tempfile.TemporaryDirectory() as folder:
        log = logging.getLogger("airflow.scheduler")
        log.setLevel(logging.INFO)
        log.addHandler(logging.FileHandler(os.path.join(folder, "scheduler.log")))
        end, number, bad = time.monotonic() + SECONDS, 0, 0
        while time.monotonic() < end:
            bad += process_round(folder, number, log)
            count, size = heartbeat(folder, log)
            number += 1
            print(f"round {number}: {count} logs of {size >> 20} MiB in all", flush=True)
        for handler in log.handlers:
            handler.close()
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
