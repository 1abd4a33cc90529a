"""A server with two tools: load embeds the documents of a topic, search finds the best of them"""

import asyncio
import json
import signal
import zlib

import torch

from session_manager import SessionManager

torch.set_num_threads(1)
DOCUMENTS, WIDTH = 1500, 256


class App:
    def __init__(self):
        torch.manual_seed(0)
        self.table = torch.nn.EmbeddingBag(8192, WIDTH)
        self.layer = torch.nn.Linear(WIDTH, WIDTH)

    def initialize(self):
        return {"index": None, "calls": 0}

    @torch.inference_mode()
    def embed(self, tokens):
        return torch.nn.functional.normalize(torch.tanh(self.layer(self.table(tokens))), dim=1)

    def load(self, state, topic):
        generator = torch.Generator().manual_seed(zlib.crc32(topic.encode()))
        state["index"] = self.embed(torch.randint(0, 8192, (DOCUMENTS, 32), generator=generator))
        return {"documents": len(state["index"])}

    def search(self, state, query):
        tokens = torch.tensor([[zlib.crc32(word.encode()) % 8192 for word in query.split()]])
        return {"best": (state["index"] @ self.embed(tokens)[0]).topk(5).indices.tolist()}

    async def call_tool(self, state, message):
        state["calls"] += 1
        tool = {"load": self.load, "search": self.search}[message["tool"]]
        return await asyncio.to_thread(tool, state, message["text"])


async def main():
    manager, stop = SessionManager(App()), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    async def connection(reader, writer):
        if line := await reader.readline():
            writer.write(json.dumps(await manager.handle_request(json.loads(line))).encode() + b"\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()
    print("server stopped", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
