"""Train an encoder on perturbed and mixed cuts, which the loader's workers make on the fly"""

import time

import numpy as np
import torch
from cuts import RATE, MixedCut, MonoCut
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
CUTS, SECONDS, FRAMES, RUN_S = 180, 2.5, 200, 30.0


class CutPerturb:
    """A custom transform: speed, then noise at a random level"""

    def __init__(self):
        self.rng = None

    def __call__(self, cut):
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed() % 2**32)
        cut = cut.perturb_speed(self.rng.uniform(0.9, 1.1))
        noise = MonoCut(10_000 + int(self.rng.integers(0, 30)), 1.0)
        return MixedCut(cut, noise, self.rng.uniform(5, 20))


class SpeechDataset(Dataset):
    def __init__(self):
        self.cuts = [MonoCut(number, SECONDS) for number in range(CUTS)]
        self.transform = CutPerturb()
        self.window = torch.hann_window(400)

    def __len__(self):
        return len(self.cuts)

    def __getitem__(self, index):
        audio = self.transform(self.cuts[index]).load_audio()
        spectrum = torch.stft(audio, 400, RATE // 100, window=self.window, return_complex=True).abs()
        features = torch.log1p(spectrum[:160].t())[:FRAMES]
        return features, index % 40


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv1d(160, 192, 5, padding=2), nn.ReLU(), nn.Conv1d(192, 192, 5, padding=2), nn.ReLU()
        )
        self.recurrent = nn.GRU(192, 192, batch_first=True)
        self.head = nn.Linear(192, 40)

    def forward(self, features):
        hidden = self.convolutions(features.transpose(1, 2)).transpose(1, 2)
        return self.head(self.recurrent(hidden)[0].mean(dim=1))


def main():
    torch.manual_seed(1)
    loader = DataLoader(SpeechDataset(), batch_size=6, shuffle=True, num_workers=2, persistent_workers=True)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    end, epoch, step = time.monotonic() + RUN_S, 0, 0
    while time.monotonic() < end:
        for features, speakers in loader:
            for _ in range(2):
                loss = nn.functional.cross_entropy(model(features), speakers)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            step += 1
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.3f}", flush=True)
            if time.monotonic() > end:
                break
        epoch += 1


if __name__ == "__main__":
    main()
