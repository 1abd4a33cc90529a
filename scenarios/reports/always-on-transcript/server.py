"""A transcription service that is always on; it aligns the tokens of all chunks that a microphone sent"""

import asyncio
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field

import numpy as np
import torch

torch.set_num_threads(1)
RATE = 16_000
CHUNK = RATE * 6
SECONDS = 42.0


@dataclass
class Token:
    start: float
    end: float
    text: str
    speaker: int
    probability: float
    alignment: np.ndarray


@dataclass
class Segment:
    start: float
    end: float
    tokens: list = field(default_factory=list)

    @property
    def text(self):
        return "".join(token.text for token in self.tokens)


class Recognizer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.window = torch.hann_window(400)
        self.encode = torch.nn.Conv1d(201, 192, 3, padding=1)
        self.attend = torch.nn.MultiheadAttention(192, 4, batch_first=True)
        self.words = torch.nn.Linear(192, 2000)

    @torch.inference_mode()
    def forward(self, audio):
        spectrum = torch.stft(audio, 400, 160, window=self.window, return_complex=True).abs()
        hidden = torch.relu(self.encode(spectrum[None]))[..., ::2].transpose(1, 2)
        mixed, weights = self.attend(hidden, hidden, hidden)
        probabilities, words = self.words(mixed[0, ::8]).softmax(-1).max(-1)
        return words.tolist(), probabilities.tolist(), weights[0, ::8].numpy()


class TokensAlignment:
    def __init__(self):
        self.all_tokens = []
        self.all_speaker_segments = []
        self.validated_segments = []
        self.current = None

    def update(self, tokens, speaker_segment):
        self.all_tokens.extend(tokens)
        self.all_speaker_segments.append(speaker_segment)
        for token in tokens:
            if self.current is None or token.start - self.current.start > 4:
                if self.current is not None:
                    self.validated_segments.append(self.current)
                self.current = Segment(token.start, token.end)
            self.current.tokens.append(token)
            self.current.end = token.end
        return self.validated_segments[-3:]


class AudioProcessor:
    def __init__(self):
        self.recognizer = Recognizer()
        self.alignment = TokensAlignment()
        self.position = 0.0

    def process(self, pcm):
        audio = torch.frombuffer(bytearray(pcm), dtype=torch.int16).float() / 32768
        words, probabilities, weights = self.recognizer(audio)
        step = len(audio) / RATE / len(words)
        tokens = []
        for index, (word, probability) in enumerate(zip(words, probabilities)):
            start = self.position + index * step
            tokens.append(Token(start, start + step, f" w{word}", index // 20 % 2, probability, weights[index].copy()))
        self.position += len(audio) / RATE
        return self.alignment.update(tokens, (self.position, len(tokens)))


async def handle(reader, writer, processor, done):
    started = time.monotonic()
    while time.monotonic() - started < SECONDS:
        try:
            pcm = await reader.readexactly(CHUNK * 2)
        except asyncio.IncompleteReadError:
            break
        lines = await asyncio.get_running_loop().run_in_executor(None, processor.process, pcm)
        writer.write(("|".join(segment.text for segment in lines) + "\n").encode())
        await writer.drain()
    writer.close()
    done.set()


async def main():
    processor, done = AudioProcessor(), asyncio.Event()
    server = await asyncio.start_server(lambda r, w: handle(r, w, processor, done), "127.0.0.1", 0, limit=CHUNK * 2)
    microphone = os.path.join(os.path.dirname(os.path.abspath(__file__)), "microphone.py")
    client = subprocess.Popen([sys.executable, microphone, str(server.sockets[0].getsockname()[1])])
    await done.wait()
    server.close()
    print(f"{processor.position / 3600:.1f} hours, {len(processor.alignment.all_tokens)} tokens", flush=True)
    await asyncio.to_thread(client.wait)


asyncio.run(main())
