"""Audio turns for fine-tuning: each becomes text tokens, audio tokens and mel features."""

from functools import lru_cache

import numpy as np
import torch
from torch.utils.data import Dataset

SAMPLE_RATE, SECONDS_OF_AUDIO = 16_000, 2.5
VOCABULARY = 1024


def mel_filters(bins=128, n_fft=512):
    centres = np.linspace(0, n_fft // 2, bins + 2)
    frequency = np.arange(n_fft // 2 + 1)
    rise = (frequency[None] - centres[:-2, None]) / (centres[1:-1] - centres[:-2])[:, None]
    fall = (centres[2:, None] - frequency[None]) / (centres[2:] - centres[1:-1])[:, None]
    return np.clip(np.minimum(rise, fall), 0, None).astype(np.float32)


class AudioTurnDataset(Dataset):
    def __init__(self, turns, hop=160):
        self.turns, self.hop = turns, hop
        self.filters = torch.from_numpy(mel_filters())
        self.window = torch.hann_window(512)

    def __len__(self):
        return self.turns

    def _read_audio(self, i):
        rng = np.random.default_rng(i)
        length = int(SAMPLE_RATE * SECONDS_OF_AUDIO)
        carrier = np.sin(np.arange(length, dtype=np.float32) * (0.02 + 0.0001 * (i % 300)))
        return torch.from_numpy(carrier + rng.normal(0, 0.1, length).astype(np.float32))

    def _extract_features(self, audio):
        spectrum = torch.stft(audio, 512, self.hop, window=self.window, return_complex=True)
        return torch.log1p(self.filters @ spectrum.abs().square()).T.contiguous()

    @lru_cache(maxsize=None)
    def __getitem__(self, i) -> dict[str, torch.Tensor]:
        audio = self._read_audio(i)
        features = self._extract_features(audio)
        text = torch.from_numpy(np.random.default_rng(i).integers(0, VOCABULARY, 64))
        labels = torch.roll(text, -1)
        return {"input_ids": text, "audio": audio, "features": features, "labels": labels}
