"""A full finetune: a decoder is trained, and each epoch ends with a checkpoint of it and of its optimizer."""

import io
import os
import tempfile
import time

import torch
from torch import nn

SECONDS = 14.0
VOCABULARY, WIDTH = 24_000, 768


class Decoder(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCABULARY, WIDTH)
        blocks = [nn.TransformerEncoderLayer(WIDTH, 8, 2048, batch_first=True, norm_first=True) for _ in range(layers)]
        self.layers = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        hidden = self.tok_embeddings(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.norm(hidden) @ self.tok_embeddings.weight[:512].T


class FullModelCheckpointer:
    def __init__(self, folder):
        self.folder = folder

    def gather(self, state):
        """The full state of what is sharded otherwise, on the CPU."""
        if isinstance(state, torch.Tensor):
            return state.detach().to("cpu", copy=True)
        if isinstance(state, dict):
            return {key: self.gather(value) for key, value in state.items()}
        if isinstance(state, list):
            return [self.gather(value) for value in state]
        return state

    def save_checkpoint(self, model, optimizer, epoch):
        checkpoint = {"model": self.gather(model.state_dict()), "epoch": epoch}
        checkpoint["optimizer"] = self.gather(optimizer.state_dict())
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        with open(os.path.join(self.folder, f"epoch_{epoch}.pt"), "wb") as file:
            file.write(buffer.getbuffer())


def train_epoch(model, optimizer, seconds):
    end, step = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        tokens = torch.randint(0, VOCABULARY, (2, 32))
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten() % 512)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        step += 1
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)


def main():
    torch.set_num_threads(1)
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, foreach=False)
    with tempfile.TemporaryDirectory() as folder:
        checkpointer = FullModelCheckpointer(folder)
        for epoch in range(2):
            train_epoch(model, optimizer, SECONDS)
            checkpointer.save_checkpoint(model, optimizer, epoch)
            print(f"saved the checkpoint of epoch {epoch}", flush=True)


if __name__ == "__main__":
    main()
