"""Show the frames of a robot: keep the transforms of the last seconds, and look up poses between them."""

import struct
import sys
from collections import deque
from itertools import islice

CACHE_SECONDS = 14.0
HEAD = struct.Struct(">I")


class TransformStamped:
    def __init__(self, frame, stamp, payload):
        self.frame, self.stamp, self.payload = frame, stamp, payload
        self.translation = [float(b) for b in payload[:3]]
        self.rotation = [float(b) for b in payload[3:7]]


class Buffer:
    """The transforms of each frame, as old as the cache's time and no older."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.frames = {}

    def set_transform(self, transform):
        storage = self.frames.setdefault(transform.frame, deque())
        storage.append(transform)
        while storage[0].stamp < transform.stamp - self.seconds:
            storage.popleft()

    def lookup(self, frame, stamp):
        storage = self.frames[frame]
        best = min(islice(reversed(storage), 50), key=lambda t: abs(t.stamp - stamp))
        return best.translation, best.rotation


def messages(stream):
    while len(head := stream.read(16)) == 16:
        frame = HEAD.unpack_from(head)[0]
        stamp = struct.unpack_from("=d", head, 4)[0]
        size = HEAD.unpack_from(head, 12)[0]
        yield frame, stamp, stream.read(size)


def main():
    buffer = Buffer(CACHE_SECONDS)
    count = 0
    for frame, stamp, payload in messages(sys.stdin.buffer):
        buffer.set_transform(TransformStamped(frame, stamp, payload))
        count += 1
        if count % 4000 == 0:
            translation, _ = buffer.lookup(frame, stamp - 0.1)
            held = sum(len(s) for s in buffer.frames.values())
            print(f"{count} transforms, {held} held, frame {frame} at {translation}", flush=True)


if __name__ == "__main__":
    main()
