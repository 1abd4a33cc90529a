"""Answers the questions of the test set; words become vectors in the dataset's text processor"""

import argparse
import os
import random

import numpy as np
import torch
from fasttext_processor import DIM, FastTextProcessor, write_vectors
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class VQADataset(Dataset):
    def __init__(self, words, processor, size=20_000):
        self.words, self.processor, self.size = words, processor, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        generator = random.Random(index)
        question = generator.choices(self.words, k=14)
        features = np.random.default_rng(index).standard_normal((36, 64), dtype=np.float32)
        return {"text": self.processor(question), "image": torch.from_numpy(features), "question_id": index}


class Pythia(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = nn.GRU(DIM, 128, batch_first=True)
        self.image = nn.Linear(64, 128)
        self.answer = nn.Linear(128, 300)

    def forward(self, batch):
        _, question = self.text(batch["text"])
        regions = self.image(batch["image"])
        attention = (regions @ question[-1].unsqueeze(2)).softmax(1)
        return self.answer(question[-1] * (regions * attention).sum(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_workers", type=int, default=4)
    parser.add_argument("--batch_size", type=int, default=32)
    arguments = parser.parse_args()
    path = os.path.join(os.getcwd(), "wiki.en.bin")
    words = write_vectors(path)
    dataset = VQADataset(words, FastTextProcessor(path))
    loader = DataLoader(dataset, arguments.batch_size, num_workers=arguments.num_workers)
    model = Pythia().eval()
    answers = {}
    with torch.inference_mode():
        for number, batch in enumerate(loader):
            found = model(batch).argmax(1)
            answers.update(zip(batch["question_id"].tolist(), found.tolist()))
            if number % 50 == 0:
                print(f"{len(answers)} of {len(dataset)} questions answered", flush=True)
    print(f"{len(answers)} answers", flush=True)


if __name__ == "__main__":
    main()
