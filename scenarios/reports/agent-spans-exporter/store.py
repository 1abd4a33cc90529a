"""The store: takes the spans of rollouts, and keeps their rewards only"""

import argparse
import asyncio
import json


class Store:
    def __init__(self):
        self.rewards = {}
        self.spans = 0
        self.over = asyncio.Event()

    async def serve(self, reader, writer):
        while head := await reader.readline():
            spans = json.loads(await reader.readexactly(int(head)))
            self.spans += len(spans)
            for span in spans:
                rollout = span["headers"]["x-rollout-id"]
                self.rewards[rollout] = self.rewards.get(rollout, 0.0) + span["reward"]
            writer.write(b"ok\n")
            await writer.drain()
        writer.close()
        self.over.set()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--announce", required=True)
    options = parser.parse_args()
    store = Store()
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0)
    with open(options.announce, "w") as file:
        print(server.sockets[0].getsockname()[1], file=file)
    await store.over.wait()
    print(f"{store.spans} spans of {len(store.rewards)} rollouts", flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
