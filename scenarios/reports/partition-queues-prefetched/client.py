"""The client's side of a consumer: a thread that fetches, and a queue for each partition"""

import collections
import json
import socket
import threading
import zlib


class Consumer:
    def __init__(self, port, partitions, settings):
        self.limit = settings["queued.max.messages.kbytes"] << 10
        self.max_bytes = settings["fetch.message.max.bytes"]
        self.queues = {partition: collections.deque() for partition in range(partitions)}
        self.sizes = dict.fromkeys(self.queues, 0)
        self.offsets = dict.fromkeys(self.queues, 0)
        self.changed = threading.Condition()
        self.closed = False
        self.turn = 0
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.stream = self.connection.makefile("rb")
        self.fetcher = threading.Thread(target=self._fetch_on, name="rdk:broker")
        self.fetcher.start()

    def _next_partition(self):
        """The emptiest partition below the limit; None when the consumer is closed"""
        with self.changed:
            while not self.closed:
                partition = min(self.sizes, key=self.sizes.get)
                if self.sizes[partition] + self.max_bytes <= self.limit:
                    return partition
                self.changed.wait()
        return None

    def _fetch_on(self):
        while (partition := self._next_partition()) is not None:
            request = {"partition": partition, "offset": self.offsets[partition], "max_bytes": self.max_bytes}
            self.connection.sendall(json.dumps(request).encode() + b"\n")
            head = json.loads(self.stream.readline())
            messages = zlib.decompress(self.stream.read(head["bytes"])).split(b"\n")
            self.offsets[partition] += head["count"]
            with self.changed:
                self.queues[partition].extend(messages)
                self.sizes[partition] += sum(map(len, messages))
                self.changed.notify_all()

    def poll(self):
        """One message of the next partition in turn that has any"""
        with self.changed:
            while not any(self.queues.values()):
                self.changed.wait()
            while not self.queues[self.turn]:
                self.turn = (self.turn + 1) % len(self.queues)
            message = self.queues[self.turn].popleft()
            self.sizes[self.turn] -= len(message)
            self.turn = (self.turn + 1) % len(self.queues)
            self.changed.notify_all()
            return message

    def queued(self):
        with self.changed:
            return sum(self.sizes.values())

    def close(self):
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self.fetcher.join()
        self.stream.close()
        self.connection.close()
