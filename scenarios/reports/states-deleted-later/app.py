"""A demo that answers questions about an image; what it knows of the image is the session's state"""

import asyncio
import json
import sys
import time

import torch

torch.set_num_threads(1)
TIME_TO_LIVE, LOOK_S, EVENT_S = 7.0, 0.5, 0.045
PATCHES, WIDTH = 8000, 128


class SessionState:
    def __init__(self):
        self.features = None
        self.closed_at = None

    @property
    def expired(self):
        return self.closed_at is not None and time.monotonic() - self.closed_at > TIME_TO_LIVE


class StateHolder:
    def __init__(self):
        self.session_data = {}
        self.deleted = 0

    def __getitem__(self, session):
        if session not in self.session_data:
            self.session_data[session] = SessionState()
        return self.session_data[session]

    def delete_all_expired_state(self):
        for session in [name for name, state in self.session_data.items() if state.expired]:
            del self.session_data[session]
            self.deleted += 1


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = torch.nn.Linear(48, WIDTH)
        self.mix = torch.nn.Linear(WIDTH, WIDTH)

    def features(self, seed):
        patches = torch.randn(PATCHES, 48, generator=torch.Generator().manual_seed(seed))
        return torch.tanh(self.encode(patches))

    def ask(self, features, seconds):
        until, answer = time.monotonic() + seconds, 0
        query = torch.ones(WIDTH)
        while time.monotonic() < until:
            weights = (features @ self.mix(query)).softmax(0)
            query = weights @ features
            answer = int(query.argmax())
        return answer


class App:
    def __init__(self):
        torch.manual_seed(0)
        self.model = Model()
        self.states = StateHolder()
        self.over = asyncio.Event()

    async def delete_state(self):
        while True:
            self.states.delete_all_expired_state()
            await asyncio.sleep(LOOK_S)

    async def serve(self, reader, writer):
        session = None
        while line := await reader.readline():
            event = json.loads(line)
            if event["fn"] == "shutdown":
                self.over.set()
                break
            session = event["session"]
            state = self.states[session]
            if event["fn"] == "upload":
                state.features = self.model.features(event["seed"])
            answer = self.model.ask(state.features, EVENT_S)
            writer.write(json.dumps({"answer": answer}).encode() + b"\n")
            await writer.drain()
        if session is not None:
            self.states[session].closed_at = time.monotonic()
        writer.close()


async def main():
    app = App()
    server = await asyncio.start_server(app.serve, "127.0.0.1", 0)
    deleting = asyncio.create_task(app.delete_state())
    with open(sys.argv[1], "w") as file:
        print(server.sockets[0].getsockname()[1], file=file)
    await app.over.wait()
    deleting.cancel()
    server.close()
    print(f"{len(app.states.session_data)} states left, {app.states.deleted} deleted", flush=True)


if __name__ == "__main__":
    with torch.inference_mode():
        asyncio.run(main())
