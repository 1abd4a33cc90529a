"""Fine-tunes a small speech decoder on the turns of a data set."""

import time

import torch
from datasets import VOCABULARY, AudioTurnDataset
from torch import nn
from torch.utils.data import DataLoader

SECONDS = 22.0


class SpeechDecoder(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.whisper = nn.Sequential(
            nn.Conv1d(128, width, 5, stride=4), nn.GELU(), nn.Conv1d(width, width, 5, stride=4)
        )
        layer = nn.TransformerEncoderLayer(width, 4, 320, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, input_ids, features):
        audio = self.whisper(features.transpose(1, 2)).mean(dim=2, keepdim=True).transpose(1, 2)
        return self.head(self.body(self.embedding(input_ids) + audio))


def train():
    torch.set_num_threads(1)
    dataset = AudioTurnDataset(4_500)
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)
    model = SpeechDecoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    end = time.monotonic() + SECONDS
    for step, batch in enumerate(loader):
        logits = model(batch["input_ids"], batch["features"])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
        if time.monotonic() > end:
            break
    del loader


if __name__ == "__main__":
    train()
