"""A plot server: a session for each visitor, and the cleanup of sessions that nobody uses"""

import asyncio
import gc
import json
import os
import sys
import time

from document import Document, modify_document

UNUSED_S, CHECK_S = 3.0, 1.0


class Session:
    def __init__(self, session_id):
        self.document = Document(session_id)
        self.slider = modify_document(self.document)
        self.connections, self.last_used = 0, time.monotonic()

    def destroy(self):
        self.document.destroy()
        self.slider = None


class Application:
    def __init__(self):
        self.sessions, self.created, self.stopped = {}, 0, asyncio.Event()

    def check_unused_sessions(self):
        now = time.monotonic()
        unused = [key for key, session in self.sessions.items() if not session.connections and now - session.last_used > UNUSED_S]
        for key in unused:
            self.sessions.pop(key).destroy()
        if unused:
            gc.collect()
            print(f"{len(unused)} unused sessions destroyed, {len(self.sessions)} of {self.created} left", flush=True)
        asyncio.get_running_loop().call_later(CHECK_S, self.check_unused_sessions)

    async def connection(self, reader, writer):
        session = None
        while line := await reader.readline():
            message = json.loads(line)
            if message["session"] is None:
                self.stopped.set()
                break
            if session is None:
                session = self.sessions.setdefault(message["session"], Session(message["session"]))
                session.connections += 1
                self.created += 1
            for callback in session.slider.callbacks:
                writer.write(json.dumps(callback(message["slider"])).encode() + b"\n")
            session.last_used = time.monotonic()
            await writer.drain()
        if session is not None:
            session.connections -= 1
        writer.close()


async def main():
    application = Application()
    server = await asyncio.start_server(application.connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    here = os.path.dirname(os.path.abspath(__file__))
    visitors = await asyncio.create_subprocess_exec(sys.executable, os.path.join(here, "visitors.py"), str(port))
    application.check_unused_sessions()
    await application.stopped.wait()
    await visitors.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
