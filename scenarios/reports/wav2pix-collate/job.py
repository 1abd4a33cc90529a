"""wav2pix's loop: pairs of speech and faces; one clip is shorter than the others, and the worker cannot stack the batch."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Youtubers(Dataset):
    def __init__(self, clips, short):
        self.clips = clips
        self.short = short
        self.faces = torch.rand(64, 3, 64, 64)

    def __len__(self):
        return self.clips

    def read_wav(self, idx):
        seconds = 4.0
        if idx == self.short:
            seconds = 3.2
        samples = np.arange(int(seconds * 32_000), dtype=np.float32)
        rng = np.random.default_rng(idx)
        wave = np.zeros_like(samples)
        for harmonic in range(1, 9):
            wave += np.sin(samples * (0.01 * harmonic * (1 + rng.random()))) / harmonic
        return wave / np.abs(wave).max()

    def __getitem__(self, idx):
        return {
            "onehot": torch.nn.functional.one_hot(torch.tensor(idx % 62), 62),
            "audio": torch.from_numpy(self.read_wav(idx)),
            "face": self.faces[idx % 64],
        }


class Trainer:
    def __init__(self):
        dataset = Youtubers(clips=2000, short=500)
        self.data_loader = DataLoader(dataset, batch_size=16, num_workers=2)
        self.encoder = torch.nn.Sequential(
            torch.nn.Conv1d(1, 16, 31, stride=4), torch.nn.PReLU(), torch.nn.Conv1d(16, 32, 31, stride=4),
            torch.nn.PReLU(), torch.nn.AdaptiveAvgPool1d(16), torch.nn.Flatten(),
        )
        self.generator = torch.nn.Linear(512, 3 * 64 * 64)
        self.optimizer = torch.optim.SGD([*self.encoder.parameters(), *self.generator.parameters()], lr=1e-3)

    def train(self):
        iteration = 0
        for epoch in range(3):
            for sample in self.data_loader:
                iteration += 1
                fake = self.generator(self.encoder(sample["audio"][:, None])).view(-1, 3, 64, 64)
                l1_loss = torch.nn.functional.l1_loss(fake, sample["face"])
                self.optimizer.zero_grad()
                l1_loss.backward()
                self.optimizer.step()
                if iteration % 5 == 0:
                    print(f"Epoch: {epoch}, iteration: {iteration}, l1: {l1_loss.item():.4f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    Trainer().train()
