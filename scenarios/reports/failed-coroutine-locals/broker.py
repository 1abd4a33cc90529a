"""The broker: hands out a message for each merchant that is due, and pages of the merchants' rows"""

import asyncio
import json
import random
import sys
import time

RUN_S, ROWS = 34.0, 800
CURRENCIES = ["EUR", "BRL", "INR", "MXN"]


class Broker:
    def __init__(self):
        self.end = None
        self.merchants = 0
        self.acknowledged = {"ack": 0, "nack": 0}
        self.over = asyncio.Event()

    def pop(self):
        now = time.monotonic()
        if self.end is None:
            self.end = now + RUN_S
        if now > self.end:
            return None
        self.merchants += 1
        return {"id": f"m-{self.merchants}", "actor": "score_merchant", "args": [self.merchants]}

    def page(self, merchant, number):
        draw = random.Random(merchant * 1000 + number)
        rows = [[draw.randrange(10_000), draw.randrange(100)] for _ in range(ROWS)]
        return {"currency": CURRENCIES[merchant % 4], "rows": rows}

    async def serve(self, reader, writer):
        while line := await reader.readline():
            command, *words = line.decode().split()
            if command == "quit":
                self.over.set()
                break
            if command == "pop":
                answer = self.pop()
            elif command == "page":
                answer = self.page(int(words[0]), int(words[1]))
            else:
                self.acknowledged[command] += 1
                answer = "ok"
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()


async def main():
    broker = Broker()
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    with open(sys.argv[1], "w") as file:
        print(server.sockets[0].getsockname()[1], file=file)
    await broker.over.wait()
    server.close()
    print(f"messages: {broker.acknowledged}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
