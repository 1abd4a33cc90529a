"""A broker with one topic: reads compressed batches of messages from its log for a consumer"""

import json
import socket
import time
import zlib

import numpy as np

MESSAGE_NUMBERS, READ_S = 22_000, 0.03


class Log:
    """The backlog of a partition, of which each batch is packed when it is read"""

    def __init__(self, partition):
        self.partition = partition
        self.numbers = np.random.default_rng(partition).integers(100_000, 1_000_000, MESSAGE_NUMBERS)

    def message(self, offset):
        readings = np.roll(self.numbers, 37 * offset).tolist()
        return json.dumps({"partition": self.partition, "offset": offset, "readings": readings}).encode()

    def read(self, offset, max_bytes):
        """The number of messages of a batch, and the batch, compressed"""
        until = time.monotonic() + READ_S
        messages, size = [], 0
        while not messages or size + len(messages[-1]) <= max_bytes:
            messages.append(self.message(offset + len(messages)))
            size += len(messages[-1])
        joined = b"\n".join(messages)
        while True:
            packed = zlib.compress(joined, 1)
            if time.monotonic() > until:
                return len(messages), packed


def main():
    logs = {}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
    with connection, connection.makefile("rb") as requests:
        for line in requests:
            request = json.loads(line)
            partition = request["partition"]
            if partition not in logs:
                logs[partition] = Log(partition)
            count, packed = logs[partition].read(request["offset"], request["max_bytes"])
            head = {"count": count, "bytes": len(packed)}
            connection.sendall(json.dumps(head).encode() + b"\n" + packed)


if __name__ == "__main__":
    main()
