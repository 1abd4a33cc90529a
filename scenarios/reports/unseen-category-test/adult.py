"""A table of people with categories; an attentive network is trained on one split and then predicts the other"""

import csv
import io
import random
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

SECONDS = 24.0
KINDS = {"work": 8, "school": 16, "marriage": 7, "job": 14, "country": 41}


def make_csv(rows):
    """Stands for the file; a country that one person of forty thousand comes from is at its end"""
    picker = random.Random(6)
    text = io.StringIO()
    writer = csv.writer(text)
    for row in range(rows):
        kinds = [f"{name}-{picker.randrange(count)}" for name, count in KINDS.items()]
        if row == rows - 17:
            kinds[-1] = "country-Holand-Netherlands"
        numbers = [picker.randrange(17, 90), picker.randrange(1, 99), round(picker.expovariate(1e-3), 2)]
        writer.writerow([*kinds, *numbers, int(numbers[0] + numbers[1] + len(kinds[1]) > 110)])
    return text.getvalue()


def read(text):
    rows = list(csv.reader(io.StringIO(text)))
    names = list(KINDS)
    codes = []
    for column in range(len(names)):
        values = {}
        codes.append([values.setdefault(row[column], len(values)) for row in rows])
    numbers = np.array([[float(value) for value in row[len(names) : -1]] for row in rows], np.float32)
    return np.array(codes).T, numbers / numbers.std(0), np.array([int(row[-1]) for row in rows])


class AttentiveNetwork(torch.nn.Module):
    def __init__(self, counts, numbers, steps=3, width=64):
        super().__init__()
        self.embeddings = torch.nn.ModuleList(torch.nn.Embedding(count, 6) for count in counts)
        inputs = len(counts) * 6 + numbers
        self.masks = torch.nn.ModuleList(torch.nn.Linear(width, inputs) for _ in range(steps))
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(inputs, width) for _ in range(steps))
        self.first = torch.nn.Linear(inputs, width)
        self.output = torch.nn.Linear(width, 2)

    def forward(self, codes, numbers):
        embedded = [embedding(codes[:, column]) for column, embedding in enumerate(self.embeddings)]
        inputs = torch.cat([*embedded, numbers], 1)
        hidden = total = torch.relu(self.first(inputs))
        for mask, block in zip(self.masks, self.blocks):
            hidden = torch.relu(block(inputs * torch.softmax(mask(hidden), 1)))
            total = total + hidden
        return self.output(total)


def main():
    torch.set_num_threads(1)
    codes, numbers, labels = read(make_csv(60_000))
    split = 48_000
    counts = [len(set(codes[:split, column])) for column in range(codes.shape[1])]
    tensors = [torch.from_numpy(part) for part in (codes, numbers, labels)]
    train = TensorDataset(*(tensor[:split] for tensor in tensors))
    test = TensorDataset(*(tensor[split:] for tensor in tensors))
    model = AttentiveNetwork(counts, numbers.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    started, epoch = time.monotonic(), 0
    while time.monotonic() - started < SECONDS:
        epoch += 1
        for batch_codes, batch_numbers, batch_labels in DataLoader(train, 512, shuffle=True, num_workers=2):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch_codes, batch_numbers), batch_labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
    model.eval()
    with torch.no_grad():
        predictions = [
            model(batch_codes, batch_numbers).argmax(1) for batch_codes, batch_numbers, _ in DataLoader(test, 1024)
        ]
    accuracy = (torch.cat(predictions) == tensors[2][split:]).float().mean()
    print(f"accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
