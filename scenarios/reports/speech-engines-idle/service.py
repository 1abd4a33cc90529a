"""The speech service of a radio station: engines that are started for a text and stopped when they idle"""

import asyncio
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
IDLE_UNLOAD_S = 2.0
WIDTHS = {"chatterbox": 2560, "kokoro": 1792}


class Engine:
    """One worker process, its lock and its idle clock"""

    def __init__(self, name):
        self.name, self.worker, self.lock = name, None, asyncio.Lock()
        self.last, self.loads, self.unloads = time.monotonic(), 0, 0

    async def start(self):
        self.worker = await asyncio.create_subprocess_exec(
            sys.executable,
            os.path.join(HERE, "engine.py"),
            self.name,
            str(WIDTHS[self.name]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        await self.worker.stdout.readline()
        self.loads += 1

    async def stop(self):
        worker, self.worker = self.worker, None
        worker.terminate()
        await worker.communicate()
        self.unloads += 1

    async def speak(self, text, share_s):
        async with self.lock:
            if self.worker is None:
                await self.start()
            self.worker.stdin.write(json.dumps({"text": text, "share_s": share_s}).encode() + b"\n")
            answer = json.loads(await self.worker.stdout.readline())
            self.last = time.monotonic()
        return answer

    async def watch(self, stopped):
        """Stops the worker when nothing was said for a while"""
        while not stopped.is_set():
            left = self.last + IDLE_UNLOAD_S - time.monotonic()
            try:
                await asyncio.wait_for(stopped.wait(), max(0.2, left))
            except asyncio.TimeoutError:
                async with self.lock:
                    if self.worker is not None and time.monotonic() >= self.last + IDLE_UNLOAD_S:
                        await self.stop()


async def main():
    engines, stopped = {name: Engine(name) for name in WIDTHS}, asyncio.Event()

    async def connection(reader, writer):
        while line := await reader.readline():
            request = json.loads(line)
            engine = engines[request["engine"]]
            answer = await engine.speak(request["text"], request["share_s"])
            answer |= {"loads": engine.loads, "unloads": engine.unloads}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()
        stopped.set()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.gather(*[engine.watch(stopped) for engine in engines.values()])
    server.close()
    for engine in engines.values():
        if engine.worker is not None:
            await engine.stop()
    print(", ".join(f"{name}: {engine.loads} loads" for name, engine in engines.items()), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
