"""Live transcription of many sessions: sound comes over sockets, and goes to recognition and to diarization"""

import asyncio
import concurrent.futures
import os
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn

from audio_queue import AudioQueue

torch.set_num_threads(1)
RATE, MESSAGE_BYTES, QUEUE_S = 16_000, 32_000, 120
PART_S, STEP_S, SESSIONS = 4, 0.009, 14


class Network(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 24, 400, 160), nn.GELU(), nn.Conv1d(24, 48, 3, 2), nn.GELU(), nn.Conv1d(48, outputs, 3, 2)
        )

    @torch.inference_mode()
    def forward(self, sound):
        until, labels = time.monotonic() + STEP_S, None
        while labels is None or time.monotonic() < until:
            labels = self.layers(torch.from_numpy(sound)[None, None])[0].argmax(0)
        return labels


class Server:
    def __init__(self):
        self.recognition, self.diarization = Network(32).eval(), Network(4).eval()
        self.executor = concurrent.futures.ThreadPoolExecutor(1)
        self.left, self.ended = SESSIONS, asyncio.Event()
        self.start = time.monotonic()

    async def process(self, queue, network):
        counts = np.zeros(32, np.int64)
        loop = asyncio.get_running_loop()
        while (sound := await queue.get(PART_S * RATE)) is not None:
            labels = await loop.run_in_executor(self.executor, network, sound)
            counts += np.bincount(labels.numpy(), minlength=32)
        return counts

    async def session(self, reader, writer):
        queues = AudioQueue(QUEUE_S, RATE), AudioQueue(QUEUE_S, RATE)
        tasks = [
            asyncio.create_task(self.process(queue, network))
            for queue, network in zip(queues, (self.recognition, self.diarization))
        ]
        seconds = 0
        try:
            while True:
                data = await reader.readexactly(MESSAGE_BYTES)
                sound = np.frombuffer(data, np.int16).astype(np.float32) / 32768
                await queues[0].put(sound)
                await queues[1].put(sound.copy())
                seconds += len(sound) / RATE
        except asyncio.IncompleteReadError:
            for queue in queues:
                await queue.put(None)
        words, speakers = [await task for task in tasks]
        peak = max(queue.peak for queue in queues) / RATE
        taken = time.monotonic() - self.start
        print(f"{seconds:.0f} s of sound in {taken:.1f} s, at most {peak:.0f} s waited, {words.argmax()}", flush=True)
        writer.close()
        self.left -= 1
        if self.left == 0:
            self.ended.set()


async def run():
    server = Server()
    listening = await asyncio.start_unix_server(server.session, "live.socket")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients.py")
    clients = subprocess.Popen([sys.executable, script, "live.socket", str(SESSIONS)])
    await server.ended.wait()
    listening.close()
    return clients.wait()


def main():
    torch.manual_seed(0)
    return asyncio.run(run())


if __name__ == "__main__":
    sys.exit(main())
