"""The API server: takes completions over TCP, and hands them to the engine core, which is a process of its own"""

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
port, state, length = int(sys.argv[1]), sys.argv[2], sys.argv[3]


class EngineClient:
    """Messages to and from the core, in datagrams"""

    def __init__(self):
        base = os.path.join(state, f"engine-{os.getpid()}")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"{base}.api")
        self.socket.setblocking(False)
        self.core = f"{base}.core"
        self.numbers, self.waiting = itertools.count(1), {}
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "engine_core.py"), base, length])

    async def receive(self):
        loop = asyncio.get_running_loop()
        while True:
            message = json.loads(await loop.sock_recv(self.socket, 1 << 16))
            self.waiting.pop(message["id"]).set_result(message["tokens"])

    async def started(self):
        self.waiting[0] = asyncio.get_running_loop().create_future()
        await self.waiting[0]

    async def generate(self, prompt, count):
        number, loop = next(self.numbers), asyncio.get_running_loop()
        self.waiting[number] = loop.create_future()
        message = {"id": number, "prompt": prompt, "count": count}
        await loop.sock_sendto(self.socket, json.dumps(message).encode(), self.core)
        return await self.waiting[number]

    def shutdown(self):
        self.process.terminate()
        self.process.wait()


async def main():
    engine = EngineClient()
    task = asyncio.create_task(engine.receive())
    await engine.started()

    async def connection(reader, writer):
        while line := await reader.readline():
            request = json.loads(line)
            tokens = await engine.generate(request["prompt"], request["count"])
            writer.write(json.dumps({"tokens": tokens}).encode() + b"\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", port)
    with open(os.path.join(state, "ready"), "w") as ready:
        ready.write("ready\n")
    try:
        async with server:
            await server.serve_forever()
    finally:
        task.cancel()
        engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
