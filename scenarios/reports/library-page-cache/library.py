"""A music library's server: what is similar to a track is worked out from the rows of a database; with a player on it"""

import asyncio
import concurrent.futures
import json
import multiprocessing
import random
import socket
import sqlite3
import sys
import time

import numpy as np

TRACKS, WIDTH, CANDIDATES, ALIGNED = 16_000, 3072, 40, 32_768
CACHE_KIB, LASTS_S = 64_000, 30


def create_library(path):
    rng = np.random.default_rng(8)
    noise = rng.normal(0, 1, 4 * WIDTH).astype(np.float32)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("CREATE TABLE tracks (id INTEGER PRIMARY KEY, name TEXT, fingerprint BLOB)")
    rows = (
        (number, f"track {number}", (noise[number % WIDTH : number % WIDTH + WIDTH] * (1 + number % 5)).tobytes())
        for number in range(TRACKS)
    )
    connection.executemany("INSERT INTO tracks VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()


class DatabaseConnection:
    """One long-lived connection; all statements run in the one thread of its executor"""

    def __init__(self, path):
        self.executor = concurrent.futures.ThreadPoolExecutor(1)
        self.connection = sqlite3.connect(path, check_same_thread=False)
        self.connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self.connection.execute("PRAGMA mmap_size = 0")

    def _similar(self, track, candidates):
        marks = ",".join("?" * (len(candidates) + 1))
        statement = f"SELECT id, name, fingerprint FROM tracks WHERE id IN ({marks})"
        rows = self.connection.execute(statement, [track, *candidates]).fetchall()
        own = next(row for row in rows if row[0] == track)
        reference = np.fft.rfft(np.frombuffer(own[2], np.float32), ALIGNED).conj()
        scores = []
        for _, name, fingerprint in rows:
            spectrum = np.fft.rfft(np.frombuffer(fingerprint, np.float32), ALIGNED)
            scores.append((float(np.fft.irfft(spectrum * reference).max()), name))
        return [name for _, name in sorted(scores, reverse=True)[:10]]

    async def similar(self, track, candidates):
        return await asyncio.get_running_loop().run_in_executor(self.executor, self._similar, track, candidates)


async def serve(path, listener):
    database, stopped = DatabaseConnection(path), asyncio.Event()

    async def handle(reader, writer):
        while line := await reader.readline():
            request = json.loads(line)
            if request is None:
                stopped.set()
                break
            answer = await database.similar(request["track"], request["candidates"])
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, sock=listener)
    await stopped.wait()
    server.close()
    database.executor.shutdown()
    database.connection.close()


def play(port):
    rng, until, asked = random.Random(9), time.monotonic() + LASTS_S, 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        stream = connection.makefile("rw")
        while time.monotonic() < until:
            some = rng.sample(range(TRACKS), CANDIDATES + 1)
            stream.write(json.dumps({"track": some[0], "candidates": some[1:]}) + "\n")
            stream.flush()
            json.loads(stream.readline())
            asked += 1
            if asked % 200 == 0:
                print(f"{asked} stations", flush=True)
        stream.write("null\n")
        stream.flush()


def main():
    create_library("library.db")
    listener = socket.create_server(("127.0.0.1", 0))
    player = multiprocessing.Process(target=play, args=(listener.getsockname()[1],), name="player")
    player.start()
    listener.setblocking(False)
    asyncio.run(serve("library.db", listener))
    player.join()
    sys.exit(player.exitcode)


if __name__ == "__main__":
    main()
