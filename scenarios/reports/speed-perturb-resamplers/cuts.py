"""Cuts of recordings that are read, perturbed and mixed when they are loaded"""

import math

import numpy as np
import torch

RATE, WIDTH = 16_000, 15
_resamplers = {}


class Resample(torch.nn.Module):
    """Windowed sinc filters, one for each phase between the two rates"""

    def __init__(self, source, target):
        super().__init__()
        divisor = math.gcd(source, target)
        self.source, self.target = source // divisor, target // divisor
        scale = 0.99 * min(1.0, target / source)
        phase = (torch.arange(self.target) * self.source % self.target).float() / self.target
        taps = torch.arange(-WIDTH, WIDTH + 1).float()
        position = (taps[None] - phase[:, None]) * scale
        window = torch.cos(position.clamp(-WIDTH, WIDTH) * math.pi / (2 * WIDTH)) ** 2
        self.register_buffer("kernel", torch.sinc(position) * window * scale)

    def forward(self, audio):
        length = len(audio) * self.target // self.source
        index = torch.arange(length)
        base = index * self.source // self.target + WIDTH
        padded = torch.nn.functional.pad(audio, (WIDTH, 2 * WIDTH + 1))
        frames = padded.unfold(0, 2 * WIDTH + 1, 1)[base - WIDTH]
        return (frames * self.kernel[index % self.target]).sum(dim=1)


def get_or_create_resampler(source, target):
    if (source, target) not in _resamplers:
        _resamplers[source, target] = Resample(source, target)
    return _resamplers[source, target]


class MonoCut:
    def __init__(self, number, seconds):
        self.number, self.seconds, self.factor = number, seconds, 1.0

    def perturb_speed(self, factor):
        cut = MonoCut(self.number, self.seconds)
        cut.factor = factor
        return cut

    def load_audio(self):
        rng = np.random.default_rng(self.number)
        audio = rng.standard_normal(int(self.seconds * RATE), np.float32)
        audio = torch.from_numpy(np.convolve(audio, np.ones(8, np.float32) / 8, "same"))
        if self.factor != 1.0:
            audio = get_or_create_resampler(round(RATE * self.factor), RATE)(audio)
        return audio


class MixedCut:
    def __init__(self, speech, noise, snr):
        self.speech, self.noise, self.snr = speech, noise, snr

    def load_audio(self):
        speech, noise = self.speech.load_audio(), self.noise.load_audio()
        noise = noise.repeat(len(speech) // len(noise) + 1)[: len(speech)]
        gain = speech.norm() / noise.norm().clamp(min=1e-6) * 10 ** (-self.snr / 20)
        return speech + gain * noise
