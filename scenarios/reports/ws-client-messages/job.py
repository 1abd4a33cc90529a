"""A client takes frames from a camera server over a websocket-like stream, and runs a detector on each."""

import asyncio
import multiprocessing
import os
import socket
import struct
import time
from collections import deque

import numpy as np
import torch
from torch import nn

SECONDS, FRAMES_PER_SECOND = 22.0, 50
HEIGHT, WIDTH = 360, 640


def camera_server(listener, stop):
    rng = np.random.default_rng(1)
    sky = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    connection, _ = listener.accept()
    due = time.monotonic()
    with connection:
        while not stop.is_set():
            due += 1 / FRAMES_PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
            sky = np.roll(sky, 3, axis=1)
            exposure = rng.normal(0, 4, (HEIGHT, WIDTH, 1))
            frame = np.clip(sky + exposure, 0, 255).astype(np.uint8).tobytes()
            try:
                connection.sendall(struct.pack("!I", len(frame)) + frame)
            except OSError:
                break
    os._exit(0)


class WebSocketClientConnection(asyncio.Protocol):
    """Parses messages as they arrive; read_message() gives them to the application one at a time."""

    def __init__(self):
        self.read_queue, self.read_future = deque(), None
        self.pending, self.wanted = bytearray(), None

    def data_received(self, data):
        self.pending += data
        while True:
            if self.wanted is None and len(self.pending) >= 4:
                self.wanted = struct.unpack_from("!I", self.pending)[0]
                del self.pending[:4]
            if self.wanted is None or len(self.pending) < self.wanted:
                return
            self.on_message(bytes(self.pending[: self.wanted]))
            del self.pending[: self.wanted]
            self.wanted = None

    def on_message(self, message):
        if self.read_future is not None and not self.read_future.done():
            self.read_future.set_result(message)
            self.read_future = None
        else:
            self.read_queue.append(message)

    async def read_message(self):
        if self.read_queue:
            return self.read_queue.popleft()
        self.read_future = asyncio.get_running_loop().create_future()
        return await self.read_future


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 24, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(24, 32, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 6, 1),
        )

    @torch.inference_mode()
    def detect(self, message):
        frame = torch.from_numpy(np.frombuffer(message, np.uint8).reshape(HEIGHT, WIDTH, 3).astype(np.float32))
        views = torch.stack([frame, frame.flip(1), frame.flip(0), frame.flip(0, 1)]).permute(0, 3, 1, 2) / 255
        return max(self.body(view[None]).max().item() for view in views)


async def watch(port):
    loop = asyncio.get_running_loop()
    transport, client = await loop.create_connection(WebSocketClientConnection, "127.0.0.1", port)
    detector, end, number = Detector().eval(), time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        message = await client.read_message()
        score = await loop.run_in_executor(None, detector.detect, message)
        number += 1
        if number % 50 == 0:
            print(f"frame {number}: score {score:.3f}", flush=True)
    transport.abort()


def main():
    torch.set_num_threads(1)
    stop = multiprocessing.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = multiprocessing.Process(target=camera_server, args=(listener, stop), daemon=True)
        server.start()
        asyncio.run(watch(listener.getsockname()[1]))
        stop.set()
        server.join()


if __name__ == "__main__":
    main()
