"""A download client with a REST endpoint for logs: its MemoryHandler has no target, so its flush empties nothing."""

import asyncio
import hashlib
import logging
import logging.handlers
import os
import time

SECONDS = 32.0
PIECE = 48 * 1024


class LoggingEndpoint:
    """Serves the latest records of the session on request."""

    def __init__(self, capacity):
        self.memory_logger = logging.handlers.MemoryHandler(capacity)
        logging.getLogger().addHandler(self.memory_logger)
        logging.getLogger().setLevel(logging.DEBUG)

    def get_logs(self, max_lines):
        return [record.getMessage()[:80] for record in self.memory_logger.buffer[-max_lines:]]


class Download:
    def __init__(self, infohash, trackers):
        self.infohash = infohash
        self.trackers = trackers
        self.pieces = 0
        self._logger = logging.getLogger(self.__class__.__name__)

    async def fetch(self):
        payload = os.urandom(PIECE)
        digest = payload
        for _ in range(40):
            digest = hashlib.sha256(payload + digest).digest()
        self.pieces += 1
        self._logger.debug("%s: piece %d is %s, payload %r", self.infohash, self.pieces, digest.hex(), payload)
        await asyncio.sleep(0)


async def session(endpoint):
    downloads = [Download(hashlib.sha1(bytes([n])).hexdigest(), trackers=[]) for n in range(6)]
    end = time.monotonic() + SECONDS
    asked = time.monotonic()
    while time.monotonic() < end:
        await asyncio.gather(*(download.fetch() for download in downloads))
        if time.monotonic() - asked > 5:
            asked = time.monotonic()
            print(len(endpoint.get_logs(100)), sum(download.pieces for download in downloads), flush=True)


def main():
    endpoint = LoggingEndpoint(capacity=100_000)
    asyncio.run(session(endpoint))


if __name__ == "__main__":
    main()
