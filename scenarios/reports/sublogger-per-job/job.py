"""The job state service of a workload manager: checks and records the status updates that pilots send."""

import hashlib
import json
import logging
import threading

UPDATES = 165_000
STATES = "Received Checking Staging Waiting Matched Running Stalled Completing Done Failed".split()


class Logging:
    """The wrapper that the whole system logs with: levels of its own, and sub-loggers with their options."""

    def __init__(self, father=None, name="DIRAC"):
        self._name = name
        self._children = {}
        self._parent = father
        self._lock = threading.RLock()
        self._options = dict(father._options) if father else {"headerIsShown": True, "threadIDIsShown": False}
        self._backends = []
        self._logger = logging.getLogger(name if father is None else f"{father._name}.{name}")
        if father:
            self._name = f"{father._name}.{name}"

    def get_sub_logger(self, name):
        with self._lock:
            if name not in self._children:
                self._children[name] = Logging(self, name)
            return self._children[name]

    def verbose(self, message, value=""):
        if self._logger.isEnabledFor(logging.DEBUG):
            self._logger.debug("%s %s", message, value)

    def warn(self, message, value=""):
        self._logger.warning("%s %s", message, value)


g_logger = Logging()


class JobStateUpdateHandler:
    def __init__(self):
        self.log = g_logger.get_sub_logger("WorkloadManagement/JobStateUpdate")
        self.counts = dict.fromkeys(STATES, 0)

    def set_job_status_bulk(self, job_id, message):
        log = self.log.get_sub_logger(f"JobStatusBulk/{job_id}")
        updates = json.loads(message)
        digest = hashlib.pbkdf2_hmac("sha256", message, b"pilot", 420)
        for stamp, update in sorted(updates.items()):
            log.verbose(f"set to {update['Status']} at {stamp}", digest)
            self.counts[update["Status"]] += 1
        if job_id % 30_000 == 0:
            log.warn("minor status", update["MinorStatus"])


def pilot_message(job_id):
    """What a pilot sends for its job: the states since the last time."""
    first = job_id % 7
    steps = {f"2021-07-{21 + n} 10:0{n}": {"Status": STATES[first + n], "MinorStatus": f"step {n}"} for n in range(3)}
    return json.dumps(steps).encode()


def main():
    logging.basicConfig(level=logging.INFO)
    handler = JobStateUpdateHandler()
    for job_id in range(UPDATES):
        handler.set_job_status_bulk(job_id, pilot_message(job_id))
    print(handler.counts)


if __name__ == "__main__":
    main()
