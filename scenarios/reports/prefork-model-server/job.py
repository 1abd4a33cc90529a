"""gunicorn's shape: a master forks workers that share one socket; each worker loads its own model and serves with asyncio."""

import asyncio
import json
import os
import signal
import socket
import sys
import time

WORKERS = 3
SECONDS = 26


class OcrWrapper:
    """Loads the whole model into the worker that asks first."""

    def __init__(self):
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        torch.manual_seed(1)
        blocks = [torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(30)]
        self.model = torch.nn.Sequential(*blocks, torch.nn.Linear(1024, 26)).eval()

    def predict(self, image):
        with self.torch.inference_mode():
            picture = self.torch.tensor(image).repeat(8, 1024 // len(image))
            return "".join(chr(97 + int(n)) for n in self.model(picture).argmax(1))


class Worker:
    def __init__(self, listener):
        self.listener = listener
        self.ocr_wrapper = OcrWrapper()
        self.served = 0

    async def handle(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        image = json.loads(await reader.readexactly(length))
        answer = json.dumps({"text": self.ocr_wrapper.predict(image), "worker": os.getpid()}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(answer) + answer)
        await writer.drain()
        writer.close()
        self.served += 1

    async def serve(self):
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
        server = await asyncio.start_server(self.handle, sock=self.listener)
        async with server:
            await stopped.wait()
        print(f"worker {os.getpid()} served {self.served}", flush=True)


async def client(port, until, number):
    answers = set()
    while time.monotonic() < until:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps([(number * 37 + n) % 256 / 255 for n in range(256)]).encode()
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = await reader.read()
        writer.close()
        answers.add(json.loads(answer.split(b"\r\n\r\n")[1])["worker"])
        await asyncio.sleep(0.05)
    return answers


async def load(port):
    until = time.monotonic() + SECONDS
    found = await asyncio.gather(*[client(port, until, number) for number in range(6)])
    print(len(set.union(*found)), "workers answered")


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    listener.setblocking(False)
    pids = []
    for _ in range(WORKERS):
        pid = os.fork()
        if pid == 0:
            asyncio.run(Worker(listener).serve())
            sys.stdout.flush()
            os._exit(0)
        pids.append(pid)
    asyncio.run(load(listener.getsockname()[1]))
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
