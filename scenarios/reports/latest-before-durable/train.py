"""Trains a language model on sequences with a constant stride"""

import argparse
import time

import torch
from manager import CheckpointManager
from torch import nn

VOCABULARY, WIDTH, LENGTH, BATCH = 12_000, 512, 24, 4
SECONDS, SAVE_EVERY_S = 36.0, 5.5


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.recurrent = nn.GRU(WIDTH, WIDTH, num_layers=2, batch_first=True)

    def forward(self, tokens):
        return self.recurrent(self.embed(tokens))[0] @ self.embed.weight.T / WIDTH**0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, manager = Language(), CheckpointManager(options.folder)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    step = manager.load({name: value.detach() for name, value in model.state_dict().items()})
    generator = torch.Generator().manual_seed(step)
    started = time.monotonic()
    following = started + SAVE_EVERY_S
    while time.monotonic() < started + SECONDS:
        start = torch.randint(0, VOCABULARY, (BATCH, 1), generator=generator)
        tokens = (start + 5 * torch.arange(LENGTH + 1)) % VOCABULARY
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if time.monotonic() > following:
            manager.save(model.state_dict(), step)
            following += SAVE_EVERY_S
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    manager.wait()


if __name__ == "__main__":
    main()
