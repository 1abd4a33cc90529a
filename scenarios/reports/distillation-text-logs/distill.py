"""Distills a teacher into a smaller student, on two ranks."""

import os
import random

import torch
import torch.distributed as dist
from torch import nn
from trainer import DistillationConfig, DistillationTrainer

VOCABULARY, PROMPT = 512, 24


class Tokenizer:
    def __init__(self):
        chance = random.Random(0)
        syllables = ["ka", "lo", "mi", "ren", "sta", "vu", "te", "on", "is", "ar"]
        self.words = [" " + "".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(VOCABULARY)]
        self.numbers = {word.strip(): number for number, word in enumerate(self.words)}

    def encode(self, text):
        return [self.numbers[word] for word in text.split()]

    def batch_decode(self, ids):
        return ["".join(map(self.words.__getitem__, row)) for row in ids.tolist()]


class Language(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.layers = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, VOCABULARY))

    def forward(self, ids):
        return self.layers(self.embed(ids).mean(1))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    tokenizer = Tokenizer()
    student, teacher = Language(96), Language(384).requires_grad_(False)
    chance = random.Random(1)
    prompts = [" ".join(chance.choices(list(tokenizer.numbers), k=PROMPT)) for _ in range(4000)]
    torch.manual_seed(int(os.environ["RANK"]))
    arguments = DistillationConfig(max_steps=420, max_completion_length=6000, num_generations=8)
    DistillationTrainer(student, teacher, tokenizer, prompts, arguments).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
