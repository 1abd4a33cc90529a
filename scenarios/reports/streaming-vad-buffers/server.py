"""Streaming voice activity detection; each session has a cache of its own"""

import asyncio
import os
import struct
import subprocess
import sys

import torch
from torch import nn

RATE, CHANNELS, CHUNK = 16000, 6, 32000
WINDOW, HOP = 400, 160


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WINDOW // 2 + 1, 160)
        self.memory = nn.GRU(160, 256, batch_first=True)
        self.head = nn.Linear(256, 2)

    def forward(self, features, state):
        hidden, state = self.memory(torch.relu(self.project(features)), state)
        return torch.softmax(self.head(hidden), -1), state


class StreamingVad:
    def __init__(self):
        self.encoder = Encoder().eval()
        self.window = torch.hann_window(WINDOW)

    def new_cache(self):
        return {
            "data_buf_all": torch.zeros(CHANNELS, 0),
            "scores": torch.zeros(CHANNELS, 0, 2),
            "state": torch.zeros(1, CHANNELS, 256),
            "in_speech": False,
            "segments": 0,
        }

    def features(self, waveform):
        spectrum = torch.stft(waveform, WINDOW, HOP, window=self.window, center=False, return_complex=True)
        return torch.log1p(spectrum.abs()).transpose(1, 2)

    def detect(self, waveform, cache):
        cache["data_buf_all"] = torch.cat((cache["data_buf_all"], waveform), 1)
        scores, cache["state"] = self.encoder(self.features(waveform), cache["state"])
        cache["scores"] = torch.cat((cache["scores"], scores), 1)
        seconds = cache["data_buf_all"].shape[1] / RATE
        speech = bool(cache["scores"][:, -50:, 1].mean() > 0.5)
        if speech != cache["in_speech"]:
            cache["in_speech"] = speech
            cache["segments"] += 1
        return seconds, cache["segments"]


async def serve(vad, reader, writer):
    cache, size, number = vad.new_cache(), CHANNELS * CHUNK * 4, 0
    try:
        while True:
            data = await reader.readexactly(size)
            waveform = torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(CHANNELS, CHUNK)
            with torch.inference_mode():
                seconds, segments = vad.detect(waveform, cache)
            number += 1
            if number % 30 == 0:
                print(f"{seconds:.0f} s of audio, {segments} segments", flush=True)
            writer.write(struct.pack("<fI", seconds, segments))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    vad = StreamingVad()
    server = await asyncio.start_server(lambda r, w: serve(vad, r, w), "127.0.0.1", 0, limit=1 << 21)
    port = server.sockets[0].getsockname()[1]
    here = os.path.dirname(os.path.abspath(__file__))
    client = subprocess.Popen([sys.executable, os.path.join(here, "client.py"), str(port), "27"])
    status = await asyncio.get_running_loop().run_in_executor(None, client.wait)
    server.close()
    return status


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(asyncio.run(main()))
