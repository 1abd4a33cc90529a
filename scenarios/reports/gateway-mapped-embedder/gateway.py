"""The gateway of an agent: answers memory searches, and adds documents to memory with their embeddings"""

import asyncio
import concurrent.futures
import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import torch

from embedder import Embedder, WIDTH, write_model

torch.set_num_threads(1)
EMBED_S, KEPT = 0.09, 200


class Memory:
    def __init__(self, path):
        self.table = sqlite3.connect(path)
        self.table.execute("CREATE TABLE memories (number INTEGER PRIMARY KEY, excerpt TEXT, embedding BLOB)")

    def add(self, excerpt, embedding):
        with self.table:
            self.table.execute(
                "INSERT INTO memories (excerpt, embedding) VALUES (?, ?)", (excerpt, embedding.tobytes())
            )
            self.table.execute("DELETE FROM memories WHERE number <= (SELECT max(number) FROM memories) - ?", (KEPT,))

    def search(self, embedding):
        rows = self.table.execute("SELECT excerpt, embedding FROM memories").fetchall()
        if not rows:
            return None
        embeddings = np.frombuffer(b"".join(row[1] for row in rows), np.float32).reshape(-1, WIDTH)
        return rows[int((embeddings @ embedding).argmax())][0]


class Gateway:
    def __init__(self, embedder):
        self.embedder, self.memory, self.requests = embedder, Memory("memory.sqlite"), 0
        self.executor = concurrent.futures.ThreadPoolExecutor(1)
        self.ended = asyncio.Event()

    async def serve(self, reader, writer):
        loop = asyncio.get_running_loop()
        while line := await reader.readline():
            request = json.loads(line)
            embedding = await loop.run_in_executor(self.executor, self.embedder.embed, request["text"], EMBED_S)
            if request["kind"] == "document":
                self.memory.add(request["text"][:80], embedding)
                reply = {"added": True}
            else:
                reply = {"found": self.memory.search(embedding)}
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
            self.requests += 1
            if self.requests % 40 == 0:
                print(f"{self.requests} requests, {status()}", flush=True)
        writer.close()
        self.ended.set()


def status():
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return ", ".join(f"{key} {int(lines[key].split()[0]) >> 10} MB" for key in ("VmRSS", "RssAnon", "RssFile"))


async def run():
    gateway = Gateway(Embedder("qwen3-embedding.bin"))
    server = await asyncio.start_unix_server(gateway.serve, "gateway.socket", limit=1 << 20)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agents.py")
    agents = subprocess.Popen([sys.executable, script, "gateway.socket"])
    await gateway.ended.wait()
    server.close()
    return agents.wait()


def main():
    write_model("qwen3-embedding.bin")
    code = asyncio.run(run())
    os.remove("qwen3-embedding.bin")
    return code


if __name__ == "__main__":
    sys.exit(main())
