"""Minutes of a meeting: the transcript of its sound, and after that descriptions of the camera's frames"""

import asyncio
import os
import sys
import time

import torch
from torch import nn

import streams

torch.set_num_threads(1)
SESSION_S = 28.0
HEIGHT, WIDTH = 360, 640
CHUNKS, SAMPLES = 400, 16_000


class Transcriber(nn.Module):
    def __init__(self):
        super().__init__()
        self.frames = nn.Conv1d(1, 64, 400, 160)
        self.recurrent = nn.GRU(64, 256, num_layers=2, batch_first=True)
        self.head = nn.Linear(256, 32)

    @torch.inference_mode()
    def forward(self, chunk):
        hidden = self.frames(chunk[None, None]).transpose(1, 2)
        for _ in range(6):
            outputs, _ = self.recurrent(hidden)
        return self.head(outputs)[0].argmax(1).unique_consecutive().tolist()


class Describer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 8, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.head = nn.Linear(128, 40)

    @torch.inference_mode()
    def forward(self, data):
        frame = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(HEIGHT, WIDTH, 3)
        return int(self.head(self.layers(frame.permute(2, 0, 1)[None] / 255)).argmax())


async def sound():
    generator = torch.Generator().manual_seed(1)
    for number in range(CHUNKS):
        chunk = torch.randn(SAMPLES, generator=generator).clamp(-1, 1).mul(32767).short()
        yield streams.ProcessorPart(chunk, "audio/pcm", number=number)
        await asyncio.sleep(0)


async def camera(reader):
    number = 0
    while True:
        try:
            data = await reader.readexactly(HEIGHT * WIDTH * 3)
        except asyncio.IncompleteReadError:
            return
        yield streams.ProcessorPart(data, "image/raw", number=number)
        number += 1


async def main():
    torch.manual_seed(0)
    transcriber, describer = Transcriber().eval(), Describer().eval()
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "decoder.py")
    decoder = await asyncio.create_subprocess_exec(sys.executable, script, stdout=asyncio.subprocess.PIPE)
    end, minutes, last = time.monotonic() + SESSION_S, [], 0
    async for part in streams.concat(sound(), camera(decoder.stdout)):
        if part.mimetype == "audio/pcm":
            until = time.monotonic() + 0.4
            while time.monotonic() < until:
                text = await asyncio.to_thread(transcriber, part.data.float() / 32768)
            minutes.append(len(text))
        else:
            minutes.append(await asyncio.to_thread(describer, part.data))
        if len(minutes) - last >= 10:
            last = len(minutes)
            print(f"{part.mimetype} {part.metadata['number']}: {minutes[-1]}", flush=True)
        if time.monotonic() > end:
            break
    print(f"the session is over: minutes of {len(minutes)} parts", flush=True)
    decoder.kill()
    await decoder.wait()


if __name__ == "__main__":
    asyncio.run(main())
