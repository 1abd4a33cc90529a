"""Processes one DAG file, in a process forked for it, and logs all that it does to that file's log of the round"""

import hashlib
import logging
import os
import time

from dags import tasks

ATTEMPTS = 4


def handler_for(folder, name, number):
    path = os.path.join(folder, f"round-{number:04}")
    os.makedirs(path, exist_ok=True)
    handler = logging.FileHandler(os.path.join(path, f"{name}.py.log"))
    handler.setFormatter(logging.Formatter("[%(asctime)s] {%(name)s:%(lineno)d} %(levelname)s - %(message)s"))
    return handler


def process_file(folder, name, number, seconds):
    end, handler = time.monotonic() + seconds, handler_for(folder, name, number)
    log = logging.getLogger(f"airflow.processor.{name}")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(handler)
    log.info("Processing file %s.py for tasks to queue", name)
    for attempt in range(ATTEMPTS):
        for task, rendered in tasks(name, number):
            digest = hashlib.sha256(rendered.encode()).hexdigest()
            for field in ("sql", "environment", "parameters"):
                log.debug("rendered %s of %s (attempt %d, %s): %s", field, task, attempt, digest, rendered * 3)
    checks = 0
    while time.monotonic() < end:
        checks += len(list(tasks(name, checks)))
    log.info("DAG %s is ready, %d tasks checked", name, checks)
    handler.close()
    os._exit(0)
