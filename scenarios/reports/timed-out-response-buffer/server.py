"""Serves a depth model: a front end over HTTP, and an inference worker"""

import asyncio
import itertools
import json
import multiprocessing
import os
import sys

from worker import inference_worker

SECONDS = 26


class LitServer:
    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.worker = context.Process(target=inference_worker, args=(theirs,), name="inference_worker")
        self.worker.start()
        theirs.close()
        assert self.connection.recv() == "started"
        self.response_buffer = {}
        self.uids = itertools.count()

    def response_queue_to_buffer(self):
        """Called when the worker has a response"""
        uid, response = self.connection.recv()
        event = self.response_buffer[uid]
        self.response_buffer[uid] = response
        event.set()

    async def handle_request(self, request):
        uid = next(self.uids)
        event = asyncio.Event()
        self.response_buffer[uid] = event
        self.connection.send((uid, request))
        await event.wait()
        response = self.response_buffer.pop(uid)
        return response

    async def handle_connection(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            request = json.loads(await reader.readexactly(length))
            handling = asyncio.ensure_future(self.handle_request(request))
            hangup = asyncio.ensure_future(reader.read(1))
            await asyncio.wait([handling, hangup], return_when=asyncio.FIRST_COMPLETED)
            if not handling.done():
                handling.cancel()
                return
            hangup.cancel()
            body = handling.result()
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            writer.write(body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def run(self):
        loop = asyncio.get_running_loop()
        loop.add_reader(self.connection.fileno(), self.response_queue_to_buffer)
        server = await asyncio.start_server(self.handle_connection, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "client.py")
        client = await asyncio.create_subprocess_exec(sys.executable, script, str(port), str(SECONDS))
        status = await client.wait()
        server.close()
        loop.remove_reader(self.connection.fileno())
        return status

    def close(self):
        self.connection.send(None)
        while self.worker.is_alive() and self.connection.poll(5):
            try:
                self.connection.recv()
            except EOFError:
                break
        self.worker.join()


def main():
    server = LitServer()
    status = asyncio.run(server.run())
    server.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
