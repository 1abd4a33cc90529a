"""Trains a sentence encoder, and evaluates it on three sets of pairs at each evaluation."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from trainer import SentenceTransformerTrainer, TrainingArguments

WORDS, TOKENS = 60_000, 30_000


class Tokenizer:
    """Looks words up in a table that each process builds when it first needs it."""

    def __init__(self):
        self.table = None

    def __call__(self, words):
        if self.table is None:
            self.table = {f"word-{number:06d}": number % TOKENS for number in range(WORDS)}
        return [self.table[word] for word in words]


class Pairs(Dataset):
    def __init__(self, name, count, tokenizer):
        self.name, self.count, self.tokenizer = name, count, tokenizer

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        chance = random.Random(f"{self.name} {index}")
        words = [f"word-{chance.randrange(WORDS):06d}" for _ in range(48)]
        ids = self.tokenizer(words)
        return ids[:32], ids[16:]


def collate(pairs):
    return {
        "anchor": torch.from_numpy(np.array([pair[0] for pair in pairs])),
        "positive": torch.from_numpy(np.array([pair[1] for pair in pairs])),
    }


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, 128)
        self.dense = nn.Linear(128, 128)

    def forward(self, tokens):
        return nn.functional.normalize(self.dense(torch.tanh(self.embed(tokens).mean(1))), dim=1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tokenizer = Tokenizer()
    arguments = TrainingArguments(
        batch_size=32, dataloader_num_workers=2, dataloader_persistent_workers=True, seconds=3.4, evaluations=5
    )
    trainer = SentenceTransformerTrainer(
        Encoder(),
        arguments,
        train_dataset=Pairs("train", 20_000, tokenizer),
        eval_dataset={name: Pairs(name, 256, tokenizer) for name in ("sts", "nli", "quora")},
        collate=collate,
    )
    trainer.train()


if __name__ == "__main__":
    main()
