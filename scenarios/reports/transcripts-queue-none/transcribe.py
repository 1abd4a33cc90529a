"""Transcribes the channels of a feed one after the other: first the live ones, then the one with all recordings"""

import asyncio
import sys
import time

import torch

import ws

torch.set_num_threads(1)
CHANNELS = [("news", 16, 9.0), ("harbour", 32, 9.0), ("recordings", None, 12.0)]
BLOCK_S = 0.08


class Recogniser(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.frames = torch.nn.Conv1d(1, 64, 400, stride=160)
        self.recurrent = torch.nn.GRU(64, 160, batch_first=True)
        self.head = torch.nn.Linear(160, 32)

    @torch.inference_mode()
    def transcribe(self, data):
        until = time.monotonic() + BLOCK_S
        samples = torch.frombuffer(bytearray(data), dtype=torch.int16).float() / 32768
        while True:
            hidden, _ = self.recurrent(self.frames(samples[None, None]).transpose(1, 2))
            if time.monotonic() > until:
                return self.head(hidden)[0].argmax(1).unique_consecutive().tolist()


async def transcribe_channel(recogniser, port, name, max_queue, seconds):
    connection = await ws.connect(port, max_queue=max_queue)
    connection.send(name.encode())
    loop, tokens, blocks = asyncio.get_running_loop(), 0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        block = await connection.recv()
        tokens += len(await loop.run_in_executor(None, recogniser.transcribe, block))
        blocks += 1
    connection.close()
    print(f"{name}: {blocks} blocks, {tokens} tokens", flush=True)


async def main():
    torch.manual_seed(0)
    recogniser = Recogniser().eval()
    for name, max_queue, seconds in CHANNELS:
        await transcribe_channel(recogniser, int(sys.argv[1]), name, max_queue, seconds)


if __name__ == "__main__":
    asyncio.run(main())
