"""Checks that every reference answer runs in the sandbox before any answer of a model is scored"""

import asyncio
import json
import sys

from problems import problems

MEMORY_LIMIT_MB = 1024


async def check(requests, port, failed):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=8 << 20)
    for number, (name, code, given) in requests:
        request = {"code": code, "language": "python", "stdin": given, "memory_limit_MB": MEMORY_LIMIT_MB}
        writer.write(json.dumps(request).encode() + b"\n")
        answer = json.loads(await reader.readline())
        if answer["status"] != "Finished" or answer["return_code"]:
            if not failed:
                print(f"{name}: {answer.get('stderr', answer['status']).strip()}", file=sys.stderr, flush=True)
            failed.append(name)
        elif number % 8 == 0:
            print(f"{number}: {name} gives {answer['stdout'].strip()} in {answer['execution_time']:.2f} s", flush=True)
    writer.close()


async def main():
    failed, every = [], list(enumerate(problems(), 1))
    requests = iter(every)
    total = len(every)
    await asyncio.gather(*[check(requests, int(sys.argv[1]), failed) for _ in range(2)])
    print(f"{total - len(failed)} of {total} reference answers run", flush=True)
    if failed:
        sys.exit(f"the sandbox cannot run {len(failed)} reference answers: {', '.join(failed)}")


if __name__ == "__main__":
    asyncio.run(main())
