"""Keeps the messages of a queue in a file, and delivers as many as the prefetch count of its consumer allows"""

import asyncio
import collections
import os
import signal
import sys


class Queue:
    def __init__(self, path):
        self.file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        self.end = 0
        self.ready = collections.deque()
        self.unacked = {}
        self.tag = 0
        self.consumer = None
        self.prefetch = 0

    def publish(self, body):
        os.write(self.file, body)
        self.ready.append((self.end, len(body)))
        self.end += len(body)
        self.deliver()

    def deliver(self):
        while self.consumer is not None and self.ready and len(self.unacked) < self.prefetch:
            place = self.ready.popleft()
            self.tag += 1
            self.unacked[self.tag] = place
            self.consumer.write(b"%d %s" % (self.tag, os.pread(self.file, place[1], place[0])))

    def requeue(self):
        """Puts back what the consumer had not acknowledged when its connection closed"""
        self.consumer = None
        self.ready.extendleft(reversed(self.unacked.values()))
        self.unacked.clear()


async def handle(queue, reader, writer):
    try:
        while line := await reader.readline():
            kind, _, rest = line.partition(b" ")
            if kind == b"publish":
                queue.publish(rest)
            elif kind == b"ack":
                queue.unacked.pop(int(rest), None)
                queue.deliver()
            elif kind == b"qos":
                queue.prefetch = int(rest)
                queue.consumer = writer
                queue.deliver()
    except ConnectionError as error:
        print(f"broker: {error}", file=sys.stderr, flush=True)
    finally:
        if queue.consumer is writer:
            queue.requeue()
            print(f"broker: {len(queue.ready)} messages are ready again", flush=True)
        writer.close()


async def serve(announcement, path):
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    queue = Queue(path)
    listener = await asyncio.start_server(
        lambda reader, writer: handle(queue, reader, writer), "127.0.0.1", 0, limit=1 << 20
    )
    with open(announcement, "w") as file:
        file.write(f"{listener.sockets[0].getsockname()[1]}\n")
    await stop.wait()
    listener.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
