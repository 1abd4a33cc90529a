"""Prepares the tokens of a run, and looks at them with a bigram model"""

import json
import os
import subprocess
import sys

import numpy as np
import torch
from torch import nn

from prepare_data import Tokenizer, tokenize_documents

torch.set_num_threads(1)
TRAIN_TOKENS = 11_500_000


def streamed(lines):
    for line in lines:
        yield json.loads(line)


def fit(path, steps=20):
    tokens = np.fromfile(path, np.uint16)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(65_536, 16), nn.Linear(16, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(steps):
        places = torch.randint(0, len(tokens) - 1, (256,)).numpy()
        inputs, targets = tokens[places].astype(np.int64), tokens[places + 1].astype(np.int64) % 512
        loss = nn.functional.cross_entropy(model(torch.from_numpy(inputs)), torch.from_numpy(targets))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stream.py")
    stream = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    tokens, starts = tokenize_documents(streamed(stream.stdout), Tokenizer(), TRAIN_TOKENS)
    stream.kill()
    stream.wait()
    tokens.tofile("train.bin")
    np.save("train_starts.npy", starts)
    print(f"{len(tokens)} tokens of {len(starts)} documents, bigram loss {fit('train.bin'):.3f}", flush=True)


if __name__ == "__main__":
    main()
