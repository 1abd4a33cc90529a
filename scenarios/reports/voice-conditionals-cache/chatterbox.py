"""A text to speech model that speaks with the voice of a recording: encoders for the voice, a recurrent decoder"""

import dataclasses
import time
import wave

import numpy as np
import torch
from torch import nn

RATE, HOP, MELS, WIDTH = 24_000, 480, 80, 192
PROMPT_S, SPEECH_S = 10, 0.26


def load_voice(path):
    with wave.open(path, "rb") as file:
        data = file.readframes(PROMPT_S * RATE)
    return torch.from_numpy(np.frombuffer(data, "<i2").astype(np.float32) / 32768)


class Encoder(nn.Module):
    """Convolutions over the mel spectrogram of a recording, and the mean over its frames"""

    def __init__(self, layers):
        super().__init__()
        widths = [MELS] + [WIDTH] * layers
        self.layers = nn.ModuleList(
            nn.Conv1d(before, after, 5, padding=2) for before, after in zip(widths[:-1], widths[1:])
        )

    def forward(self, mel):
        for layer in self.layers:
            mel = nn.functional.silu(layer(mel))
        return nn.functional.normalize(mel.mean(-1))


@dataclasses.dataclass
class Conditionals:
    speaker: torch.Tensor
    reference: torch.Tensor
    emotion: torch.Tensor


class T3(nn.Module):
    """From text and conditionals to frames of speech"""

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(256, 128)
        self.start = nn.Linear(2 * WIDTH + 1, 512)
        self.cell = nn.GRUCell(128, 512)
        self.vocoder = nn.Linear(512, HOP)

    @torch.inference_mode()
    def inference(self, conditionals, text, until):
        letters = self.letters(torch.tensor(list(text.encode())))
        state = torch.cat([conditionals.speaker, conditionals.reference, conditionals.emotion], 1)
        hidden, frames = torch.tanh(self.start(state)), []
        while not frames or time.monotonic() < until:
            hidden = self.cell(letters[len(frames) % len(letters)][None], hidden)
            frames.append(hidden)
        return self.vocoder(torch.cat(frames)).flatten()


class ChatterboxTTS(nn.Module):
    def __init__(self):
        super().__init__()
        self.ve, self.s3gen, self.t3 = Encoder(4), Encoder(6), T3()
        self.register_buffer("window", torch.hann_window(1024))
        self.register_buffer("filters", torch.rand(MELS, 513))
        self.conds = None

    def mel(self, sound):
        spectrum = torch.stft(sound, 1024, HOP, window=self.window, return_complex=True).abs()
        return (self.filters @ spectrum).clamp_min(1e-5).log()[None]

    def prepare_conditionals(self, path, exaggeration):
        mel = self.mel(load_voice(path))
        self.conds = Conditionals(self.ve(mel), self.s3gen(mel), torch.full((1, 1), exaggeration))

    def generate(self, text, audio_prompt_path=None, exaggeration=0.5):
        until = time.monotonic() + SPEECH_S
        if audio_prompt_path is not None:
            self.prepare_conditionals(audio_prompt_path, exaggeration)
        return self.t3.inference(self.conds, text, until)
