"""Token classification: an evaluation over many sentences."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from trainer import Trainer

LABELS, LENGTH, VOCABULARY = 41, 128, 6000


class Sentences(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(0, VOCABULARY, (LENGTH,), generator=generator)
        return {"input_ids": ids, "labels": ids % LABELS}


class TokenClassifier(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, 4, 256, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.classifier = nn.Linear(width, LABELS)

    def forward(self, input_ids):
        hidden = self.encoder(self.embedding(input_ids))
        return self.classifier(hidden), hidden


def accuracy(logits, labels):
    return {"accuracy": (logits.argmax(-1) == labels).float().mean().item()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    trainer = Trainer(TokenClassifier(), accuracy, seconds=22.0)
    trainer.evaluate(DataLoader(Sentences(), batch_size=16))
