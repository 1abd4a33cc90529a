"""Runs code that a model wrote: each piece in a process of its own, with limits on its time and memory"""

import asyncio
import json
import os
import resource
import signal
import sys
import tempfile
import time

LARGEST = 8 << 20


def limits(memory_limit_mb):
    """What the child does between fork and exec"""

    def apply():
        size = memory_limit_mb << 20
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_STACK):
            hard = resource.getrlimit(kind)[1]
            soft = size if hard == resource.RLIM_INFINITY else min(size, hard)
            resource.setrlimit(kind, (soft, hard))

    return apply


async def run_code(request):
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "code.py")
        with open(path, "w") as file:
            file.write(request["code"])
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            path,
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=limits(request.get("memory_limit_MB", 1024)),
        )
        given = request["stdin"].encode()
        try:
            output, errors = await asyncio.wait_for(process.communicate(given), request.get("run_timeout", 20))
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
            return {"status": "TimeLimitExceeded", "execution_time": time.monotonic() - started}
    return {
        "status": "Finished",
        "return_code": process.returncode,
        "execution_time": time.monotonic() - started,
        "stdout": output.decode(),
        "stderr": errors.decode(errors="replace"),
    }


async def main():
    stop, places = asyncio.Event(), asyncio.Semaphore(2)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    async def connection(reader, writer):
        while line := await reader.readline():
            async with places:
                answer = await run_code(json.loads(line))
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=LARGEST)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
