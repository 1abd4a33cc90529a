"""Pretrains a small language model, and exports it every few steps."""

import sys
import time

import torch
from exporting import HfExport
from torch import nn

SECONDS = 55.0
EXPORT_EVERY = 3
VOCABULARY = 9000


class Decoder(nn.Module):
    def __init__(self, width=384, layers=6):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, 6, 4 * width, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.body(self.embedding(tokens), mask=mask, is_causal=True))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Decoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    export = HfExport(sys.argv[1])
    end, step = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        tokens = torch.randint(0, VOCABULARY, (2, 65))
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % EXPORT_EVERY == 0:
            export.save_hf(model, step)
            print(f"step {step} loss {loss.item():.3f}", flush=True)
    export.close()


if __name__ == "__main__":
    main()
