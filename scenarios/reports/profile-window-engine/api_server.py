"""An API server in front of an engine process"""

import argparse
import asyncio
import json
import multiprocessing
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import engine  # noqa: E402


class Server:
    def __init__(self, max_num_seqs):
        context = multiprocessing.get_context("spawn")
        self.requests, self.answers = context.Queue(), context.Queue()
        self.process = context.Process(target=engine.run, args=(self.requests, self.answers, max_num_seqs))
        self.process.start()
        self.stopped = asyncio.Event()

    async def call(self, method, payload):
        self.requests.put((method, payload))
        return await asyncio.get_running_loop().run_in_executor(None, self.answers.get)

    async def handle(self, reader, writer):
        while line := await reader.readline():
            path = line.split()[1].decode()
            length = 0
            while (header := (await reader.readline()).strip()):
                name, _, value = header.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            payload = json.loads(await reader.readexactly(length) or b"{}")
            if path == "/shutdown":
                answer = {"stopping": True}
                self.stopped.set()
            else:
                answer = await self.call(path.rsplit("/", 1)[-1], payload)
            body = json.dumps(answer).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ready", required=True)
    parser.add_argument("--max-num-seqs", type=int, default=24)
    arguments = parser.parse_args()
    server = Server(arguments.max_num_seqs)
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    with open(arguments.ready, "w") as file:
        file.write(f"{listener.sockets[0].getsockname()[1]}\n")
    await server.stopped.wait()
    server.process.terminate()
    server.process.join()


if __name__ == "__main__":
    asyncio.run(main())
