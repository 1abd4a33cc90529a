"""A camera's node: one thread captures at the camera's rate into a queue of 1000 frames, another publishes them."""

import collections
import threading
import time
import zlib

import numpy as np

SHAPE = 240, 320, 3
RATE = 90
QUEUE = 1000
SECONDS = 40


class Camera:
    def __init__(self):
        self.random = np.random.default_rng(0)
        ramp = np.indices(SHAPE[:2]).sum(0)[..., None] // 2
        self.base = (ramp + self.random.integers(0, 8, SHAPE)).astype(np.uint8)
        self.next = time.monotonic()

    def read(self):
        """Blocks until the next frame, as a device does."""
        self.next += 1 / RATE
        time.sleep(max(0.0, self.next - time.monotonic()))
        return np.roll(self.base, int(self.next * 50), axis=1)


class Node:
    def __init__(self):
        self.frames = collections.deque()
        self.condition = threading.Condition()
        self.running = True
        self.dropped = self.published = self.bytes = 0

    def capture(self):
        camera = Camera()
        while self.running:
            frame = camera.read()
            with self.condition:
                if len(self.frames) == QUEUE:
                    self.frames.popleft()
                    self.dropped += 1
                self.frames.append(frame)
                self.condition.notify()

    def publish(self):
        """The slow part on a small computer: a frame is compressed after each of three filters."""
        while True:
            with self.condition:
                while not self.frames and self.running:
                    self.condition.wait()
                if not self.running:
                    return
                frame = self.frames.popleft()
            filtered = [frame, np.diff(frame, axis=1, prepend=frame[:, :1]), np.diff(frame, axis=0, prepend=frame[:1])]
            self.bytes += min(len(zlib.compress(one.tobytes(), 6)) for one in filtered)
            self.published += 1


def main():
    node = Node()
    threads = [threading.Thread(target=node.capture), threading.Thread(target=node.publish)]
    for thread in threads:
        thread.start()
    for second in range(SECONDS):
        time.sleep(1)
        if second % 5 == 0:
            print(f"{len(node.frames)} queued, {node.published} published, {node.dropped} dropped", flush=True)
    node.running = False
    with node.condition:
        node.condition.notify_all()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
