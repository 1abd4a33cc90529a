"""Streaming text to speech: one thread generates latents, the main thread decodes them to samples"""

import argparse
import queue
import random
import sys
import threading
import time

import torch
from torch import nn

torch.set_num_threads(1)
SECONDS = 22.0
WIDTH, LATENT = 640, 64


class FlowLM(nn.Module):
    """Text and the last latent in, the next latent out; the state goes from frame to frame"""

    def __init__(self, vocabulary=4000):
        super().__init__()
        self.text = nn.Embedding(vocabulary, WIDTH)
        self.latent = nn.Linear(LATENT, WIDTH)
        self.cells = nn.ModuleList([nn.GRUCell(WIDTH, WIDTH) for _ in range(2)])
        self.flow = nn.Sequential(nn.Linear(WIDTH + LATENT, WIDTH), nn.SiLU(), nn.Linear(WIDTH, LATENT))

    def init_state(self):
        return {"hidden": [torch.zeros(1, WIDTH) for _ in self.cells], "latent": torch.zeros(1, LATENT)}

    def step(self, token, state):
        x = self.text(token) + self.latent(state["latent"])
        hidden = []
        for cell, before in zip(self.cells, state["hidden"]):
            x = cell(x, before)
            hidden.append(x)
        latent = torch.randn(1, LATENT)
        for _ in range(2):
            latent = latent + 0.5 * self.flow(torch.cat([x, latent], 1))
        return latent, {"hidden": hidden, "latent": latent}


class MimiDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(LATENT, 256 * 16),
            nn.Unflatten(1, (256, 16)),
            nn.ConvTranspose1d(256, 128, 16, stride=8, padding=4),
            nn.ELU(),
            nn.ConvTranspose1d(128, 64, 16, stride=8, padding=4),
            nn.ELU(),
            nn.ConvTranspose1d(64, 32, 8, stride=4, padding=2),
            nn.ELU(),
            nn.Conv1d(32, 1, 7, padding=3),
            nn.Tanh(),
        )

    def forward(self, latent):
        return self.layers(latent)[0, 0]


class TTSModel:
    def __init__(self, voice):
        torch.manual_seed(len(voice))
        self.flow_lm = FlowLM().eval()
        self.mimi = MimiDecoder().eval()

    def _autoregressive_generation(self, tokens, latents):
        state = self.flow_lm.init_state()
        for token in tokens:
            latent, state = self.flow_lm.step(torch.tensor([token]), state)
            latents.put(latent.detach())
        latents.put(None)

    @torch.no_grad()
    def generate_audio_stream(self, tokens):
        latents = queue.Queue(maxsize=8)
        thread = threading.Thread(
            target=self._autoregressive_generation, args=(tokens, latents), name="flow-lm", daemon=True
        )
        thread.start()
        while (latent := latents.get()) is not None:
            yield self.mimi(latent)
        thread.join()


def tokens_of_book():
    generator = random.Random(3)
    started = time.monotonic()
    while time.monotonic() - started < SECONDS:
        yield min(int(generator.expovariate(1 / 300)), 3999)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--voice", default="alba")
    model = TTSModel(parser.parse_args().voice)
    samples = 0
    for frame in model.generate_audio_stream(tokens_of_book()):
        pcm = (frame * 32767).to(torch.int16)
        sys.stdout.buffer.write(pcm.numpy().tobytes())
        if samples % (300 * len(pcm)) == 0:
            print(f"{samples / 24000:.1f} s of audio", file=sys.stderr, flush=True)
        samples += len(pcm)
    sys.stdout.buffer.flush()
    print(f"{samples / 24000:.1f} s of audio in all", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
