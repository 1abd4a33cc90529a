"""A completion server: a small recurrent model over Chinese characters, its answers as a stream of events"""

import asyncio
import json
import signal

import torch
from torch import nn

torch.set_num_threads(1)
FIRST, CHARACTERS, WIDTH = 0x4E00, 6000, 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell = nn.Embedding(CHARACTERS, WIDTH), nn.GRUCell(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CHARACTERS)

    @torch.inference_mode()
    def prefill(self, prompt):
        tokens = torch.tensor([(ord(letter) - FIRST) % CHARACTERS for letter in prompt[-256:]])
        state = torch.zeros(1, WIDTH)
        for start in range(0, len(tokens), 32):
            state = self.cell(self.embed(tokens[start : start + 32]).mean(0, keepdim=True), state)
        return state

    @torch.inference_mode()
    def step(self, token, state):
        state = self.cell(self.embed(torch.tensor([token])), state)
        return int(torch.multinomial(torch.softmax(self.head(state)[0], 0), 1)), state


def event(number, **fields):
    return f"data: {json.dumps({'id': f'cmpl-{number}', **fields}, ensure_ascii=False)}\n\n".encode()


async def main():
    torch.manual_seed(0)
    model, stop, served = Model(), asyncio.Event(), 0
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    async def connection(reader, writer):
        nonlocal served
        try:
            while line := await reader.readline():
                request = json.loads(line)
                served += 1
                number, state, token = served, model.prefill(request["prompt"]), 0
                if request["echo"]:
                    writer.write(event(number, text=request["prompt"], index=0))
                    await writer.drain()
                for _ in range(request["max_tokens"]):
                    token, state = model.step(token, state)
                    writer.write(event(number, text=chr(FIRST + token)))
                    await writer.drain()
                writer.write(b"data: [DONE]\n\n")
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=4 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()
    print(f"{served} requests served", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
