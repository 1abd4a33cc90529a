"""Runs the application in a process of its own, and starts it anew when one of its files has changed"""

import asyncio
import gc
import json
import multiprocessing
import os
import signal
import socket
import threading
import tracemalloc

from pages import Client, heavy_page, small_page

HERE = os.path.dirname(os.path.abspath(__file__))
LABELS, RECONNECT_TIMEOUT_S, RELOAD_DELAY_S = 12_000, 0.5, 0.25


def snapshot_lines():
    gc.collect()
    statistics = tracemalloc.take_snapshot().statistics("lineno")
    return [f"Client.instances: {len(Client.instances)}", *[str(one) for one in statistics[:20]]]


async def connected(reader, writer):
    """Sends the page, and keeps it until the browser has been away for some time"""
    path, client = (await reader.readline()).decode().strip(), Client()
    if path == "/heavy":
        page = heavy_page(client, LABELS)
    else:
        page = small_page(client, snapshot_lines())
    writer.write(json.dumps(page).encode() + b"\n")
    del page
    await writer.drain()
    await reader.read()
    writer.close()
    asyncio.get_running_loop().call_later(RECONNECT_TIMEOUT_S, client.delete)


def serve(listener):
    tracemalloc.start()

    async def main():
        server = await asyncio.start_server(connected, sock=listener)
        await server.serve_forever()

    asyncio.run(main())


class Supervisor:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.stop = threading.Event()

    def versions(self):
        return {name: os.stat(os.path.join(HERE, name)).st_mtime_ns for name in ("app.py", "pages.py")}

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=serve, args=(self.listener,))
        self.process.start()

    def end(self):
        self.process.terminate()
        self.process.join()

    def run(self):
        signal.signal(signal.SIGTERM, lambda *_: self.stop.set())
        versions = self.versions()
        self.start()
        print(self.listener.getsockname()[1], flush=True)
        while not self.stop.wait(RELOAD_DELAY_S):
            if self.versions() != versions:
                print("files have changed, reloading", flush=True)
                versions = self.versions()
                self.end()
                self.start()
        self.end()


if __name__ == "__main__":
    Supervisor().run()
