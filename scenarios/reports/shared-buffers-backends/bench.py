"""A benchmark: one connection after the other joins, and each asks for a relation after the other"""

import asyncio
import json
import sys
import time

SECONDS, CONNECTIONS, JOIN_S = 30.0, 7, 2.4
done, clients = 0, []


async def client(number, port, begin):
    global done
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    asked = 6 * number
    while time.monotonic() < begin + SECONDS:
        writer.write(json.dumps({"relation": asked}).encode() + b"\n")
        answer = json.loads(await reader.readline())
        asked, done = asked + 1, done + 1
        if done % 40 == 0:
            print(f"{done} queries, the last sum {answer['sum']}", flush=True)
        if number + 1 < CONNECTIONS and number + 1 == len(clients) and time.monotonic() > begin + JOIN_S * (number + 1):
            clients.append(asyncio.create_task(client(number + 1, port, begin)))
    writer.close()
    await writer.wait_closed()


async def main():
    begin = time.monotonic()
    clients.append(asyncio.create_task(client(0, int(sys.argv[1]), begin)))
    for task in clients:
        await task
    print(f"{done} queries by {len(clients)} connections", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
