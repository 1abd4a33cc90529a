"""Sessions over requests: the first request of a client makes a transport, later ones name its session"""

import asyncio
import uuid


class Transport:
    def __init__(self, session_id):
        self.session_id = session_id
        self.incoming = asyncio.Queue(maxsize=1)

    async def handle_request(self, message):
        answer = asyncio.get_running_loop().create_future()
        await self.incoming.put((message, answer))
        return await answer


class SessionManager:
    def __init__(self, app):
        self.app = app
        self.server_instances, self.tasks = {}, set()

    async def run_server(self, transport):
        try:
            state = self.app.initialize()
            while True:
                message, answer = await transport.incoming.get()
                answer.set_result(await self.app.call_tool(state, message))
        except Exception:
            self.server_instances.pop(transport.session_id, None)  # a crashed session
            raise

    async def handle_request(self, message):
        session_id = message.get("session")
        if session_id is None:
            session_id = uuid.uuid4().hex
            transport = self.server_instances[session_id] = Transport(session_id)
            task = asyncio.create_task(self.run_server(transport), name=f"session-{session_id}")
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        answer = await self.server_instances[session_id].handle_request(message)
        return {"session": session_id, **answer}
