"""A server of frames over streams; clients come, take some frames and go away without a word."""

import asyncio
import os
import subprocess
import sys

FRAME = 512 * 1024
CLIENTS = set()


async def receiver(reader):
    while await reader.readline():
        pass


async def sender(writer):
    while True:
        writer.write(FRAME.to_bytes(4, "big") + os.urandom(1024) * (FRAME // 1024))
        await writer.drain()
        await asyncio.sleep(0.15)


async def server_handler(reader, writer):
    CLIENTS.add(writer)
    try:
        tasks = [asyncio.ensure_future(receiver(reader)), asyncio.ensure_future(sender(writer))]
        _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        CLIENTS.remove(writer)
        writer.close()


async def report():
    while True:
        await asyncio.sleep(3)
        print(f"{len(CLIENTS)} clients, {len(asyncio.all_tasks())} tasks", flush=True)


async def main():
    server = await asyncio.start_server(server_handler, "localhost", 0)
    port = server.sockets[0].getsockname()[1]
    reports = asyncio.create_task(report())
    here = os.path.dirname(os.path.abspath(__file__))
    clients = subprocess.Popen([sys.executable, os.path.join(here, "clients.py"), str(port)])
    status = await asyncio.to_thread(clients.wait)
    reports.cancel()
    server.close()
    return status


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
