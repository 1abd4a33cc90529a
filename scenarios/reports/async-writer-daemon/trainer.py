"""Fine-tunes a language model, and saves it all the while"""

import tempfile
import time

import torch
from async_save import AsyncSaver
from torch import nn

torch.set_num_threads(1)
WORDS, WIDTH, LAYERS, LENGTH, BATCH, STEPS, SAVE_EVERY, STEP_S = 12000, 384, 4, 24, 2, 140, 22, 0.2


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.leave = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        block = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False)
        mask = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, tokens):
        length = tokens.shape[1]
        return self.leave(self.blocks(self.embed(tokens), mask=self.mask[:length, :length]))


def state_of(model, optimizer):
    """All tensors of the model and its optimizer, by name"""
    state = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            state[f"optimizer.{name}.{key}"] = value
    return state


def fine_tune(folder):
    torch.manual_seed(0)
    model = LanguageModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    saver, begin = AsyncSaver(folder), time.monotonic()
    for step in range(1, STEPS + 1):
        tokens = torch.randint(0, WORDS, (BATCH, LENGTH + 1))
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        if step % SAVE_EVERY == 0:
            saver.save(step, state_of(model, optimizer))
            print(f"step {step}: loss {loss.item():.4f}, saving", flush=True)
        with torch.no_grad():
            while time.monotonic() < begin + step * STEP_S:
                model(tokens[:1, :12])
    saver.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=".") as folder:
        fine_tune(folder)
