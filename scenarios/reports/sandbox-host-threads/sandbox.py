"""A sandbox: a process that runs snippets; the host talks to it by lines and chunks over pipes"""

import asyncio
import hashlib
import json
import sys
import time

RUN_S = 0.16


class Sandbox:
    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )

    async def run(self, snippet, head):
        self.process.stdin.write(json.dumps({"snippet": snippet, "length": len(head)}).encode() + b"\n" + head)
        await self.process.stdin.drain()
        return json.loads(await self.process.stdout.readline())

    async def stop(self):
        self.process.stdin.close()
        await self.process.wait()


def serve():
    for line in sys.stdin.buffer:
        request = json.loads(line)
        digest, until = sys.stdin.buffer.read(request["length"]), time.monotonic() + RUN_S
        while time.monotonic() < until:
            digest = hashlib.sha256(digest + request["snippet"].encode()).digest()
        print(json.dumps({"mask": digest[0]}), flush=True)


if __name__ == "__main__":
    serve()
