"""Runs tools for agents: background processes, and what is known of them"""

import asyncio
import dataclasses
import itertools
import json
import sys

LOG_LIMIT = 4000


@dataclasses.dataclass
class BgSession:
    number: int
    command: list
    process: asyncio.subprocess.Process
    reader: asyncio.Task = None
    output_lines: list = dataclasses.field(default_factory=list)
    exit_code: int = None


class ShellTools:
    def __init__(self):
        self.numbers = itertools.count(1)
        self.sessions = {}

    async def read_output(self, session):
        while chunk := await session.process.stdout.read(65536):
            session.output_lines.append(chunk.decode(errors="replace"))
        session.exit_code = await session.process.wait()

    async def background_process(self, command):
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        session = BgSession(next(self.numbers), command, process)
        session.reader = asyncio.create_task(self.read_output(session))
        self.sessions[session.number] = session
        return {"session": session.number, "pid": process.pid}

    async def process(self, action, session, limit=LOG_LIMIT):
        known = self.sessions[session]
        answer = {"session": session, "running": known.exit_code is None, "exit_code": known.exit_code}
        if action == "log":
            text = "".join(known.output_lines)
            answer["log"] = text[-limit:]
        return answer


class Gateway:
    def __init__(self):
        tools = ShellTools()
        self.tools = {"background_process": tools.background_process, "process": tools.process}
        self.over = asyncio.Event()

    async def serve(self, reader, writer):
        while line := await reader.readline():
            call = json.loads(line)
            answer = await self.tools[call["tool"]](**call["arguments"])
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()
        self.over.set()


async def main():
    gateway = Gateway()
    server = await asyncio.start_server(gateway.serve, "127.0.0.1", 0)
    with open(sys.argv[1], "w") as file:
        print(server.sockets[0].getsockname()[1], file=file)
    await gateway.over.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
