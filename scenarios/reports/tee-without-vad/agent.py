"""A voice agent with a realtime model; each call's audio comes from a process of its own"""

import argparse
import asyncio
import dataclasses
import os
import sys

import numpy as np
import torch
from torch import nn

RATE, CHANNELS, SAMPLES = 48000, 2, 4800
SECONDS, CALLS = 27, 2


@dataclasses.dataclass
class AudioFrame:
    data: np.ndarray
    number: int
    rate: int = RATE


class Tee:
    """Hands each frame of a source to all of its branches"""

    def __init__(self, names, bounded):
        self.branches = {name: asyncio.Queue(maxsize=8 if name == bounded else 0) for name in names}

    async def put(self, frame):
        for branch in self.branches.values():
            await branch.put(frame)

    def branch(self, name):
        return self.branches[name]


class AudioRecognition:
    def __init__(self, vad, stt):
        self.vad, self.stt = vad, stt
        self.tee = Tee(("primary", "vad", "stt"), bounded="primary")
        self.tasks = []

    def start(self):
        for name, consumer in (("vad", self.vad), ("stt", self.stt)):
            if consumer is not None:
                self.tasks.append(asyncio.create_task(consumer(self.tee.branch(name))))

    async def push(self, frame):
        await self.tee.put(frame)

    async def stop(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class RealtimeModel:
    def __init__(self):
        self.encoder = nn.Sequential(
            nn.Conv1d(CHANNELS, 64, 10, stride=5), nn.GELU(), nn.Conv1d(64, 128, 8, stride=4), nn.GELU(),
            nn.Conv1d(128, 128, 4, stride=2), nn.GELU(),
        ).eval()  # fmt: skip
        self.cell = nn.GRUCell(128, 128).eval()

    async def run(self, call, frames):
        state, turns, speaking = torch.zeros(1, 128), 0, False
        while (frame := await frames.get()) is not None:
            samples = torch.from_numpy(frame.data.astype(np.float32)) / 32768.0
            state = self.cell(self.encoder(samples.T[None]).mean(2), state)
            if (float(state.mean()) > 0) != speaking:
                speaking, turns = not speaking, turns + 1
            if frame.number % 1000 == 0:
                print(f"call {call}: {frame.number / 10:.0f} s of audio, {turns} turns", flush=True)


async def detect_activity(frames):
    while frame := await frames.get():
        np.abs(frame.data).mean()


async def transcribe(frames):
    while frame := await frames.get():
        np.fft.rfft(frame.data[:, 0])


async def take_call(call, model, recognition):
    here = os.path.dirname(os.path.abspath(__file__))
    room = await asyncio.create_subprocess_exec(
        sys.executable, os.path.join(here, "room.py"), str(call), str(SECONDS), stdout=asyncio.subprocess.PIPE
    )
    recognition.start()
    session = asyncio.create_task(model.run(call, recognition.tee.branch("primary")))
    number = 0
    while True:
        try:
            data = await room.stdout.readexactly(SAMPLES * CHANNELS * 2)
        except asyncio.IncompleteReadError:
            break
        number += 1
        await recognition.push(AudioFrame(np.frombuffer(data, dtype=np.int16).reshape(SAMPLES, CHANNELS), number))
    await recognition.tee.branch("primary").put(None)
    await session
    await recognition.stop()
    await room.wait()
    print(f"call {call} ended after {number} frames", flush=True)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--turn-detection", choices=("vad", "stt", "realtime_llm"), default="vad")
    mode = parser.parse_args().turn_detection
    model = RealtimeModel()
    vad = detect_activity if mode == "vad" else None
    stt = transcribe if mode in ("vad", "stt") else None
    await asyncio.gather(*(take_call(call, model, AudioRecognition(vad, stt)) for call in range(CALLS)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    asyncio.run(main())
