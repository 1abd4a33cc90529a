"""Full finetuning of a small decoder on instructions, with packed samples"""

import random
import time

import torch
from packed import IGNORE, PackedDataset
from tokenizer import SPECIAL, build_tokenizer
from torch import nn
from torch.utils.data import DataLoader

torch.set_num_threads(1)
SAMPLES, MAX_SEQ_LEN, PACKS = 40_000, 320, 6000
WIDTH, HEADS, TRAIN_S = 96, 4, 6.0
TEMPLATE = "below is an instruction that describes a task write a response that completes it instruction {} response {}"


class InstructDataset:
    """Pairs of an instruction and its response, tokenized when they are asked for"""

    def __init__(self, tokenizer, words):
        self.tokenizer, self.words = tokenizer, words

    def __iter__(self):
        numbers = random.Random(11)
        for _ in range(SAMPLES):
            instruction = " ".join(numbers.choices(self.words, k=numbers.randint(6, 20)))
            response = " ".join(numbers.choices(self.words, k=numbers.randint(8, 40)))
            prompt = self.tokenizer.encode(TEMPLATE.format(instruction, ""))[:-1]
            tokens = self.tokenizer.encode(TEMPLATE.format(instruction, response))
            tokens = tokens[:MAX_SEQ_LEN]
            known = min(len(prompt), len(tokens))
            labels = [IGNORE] * (known - 1) + tokens[known:] + [IGNORE]
            yield tokens, labels[: len(tokens)] + [IGNORE] * (len(tokens) - len(labels))


class Decoder(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, WIDTH), nn.Embedding(MAX_SEQ_LEN, WIDTH)
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        inner = [nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)]
        self.feed = nn.Sequential(nn.LayerNorm(WIDTH), *inner)
        self.head = nn.Linear(WIDTH, words)

    def forward(self, tokens, input_pos, mask):
        hidden = self.words(tokens) + self.positions(input_pos)
        batch, length, _ = hidden.shape
        parts = self.mix(hidden).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*parts, attn_mask=mask[:, None])
        hidden = hidden + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return self.head(hidden + self.feed(hidden))


def main():
    torch.manual_seed(0)
    numbers = random.Random(3)
    words = ["".join(numbers.choices("etaoinshrdlucmfwypvbgk", k=numbers.randint(2, 6))) for _ in range(12_000)]
    tokenizer = build_tokenizer(words, 300)
    begin = time.monotonic()
    dataset = PackedDataset(InstructDataset(tokenizer, words), MAX_SEQ_LEN, SPECIAL["pad"], PACKS)
    print(f"packed into {len(dataset)} rows in {time.monotonic() - begin:.1f} s", flush=True)

    model = Decoder(len(tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loader = DataLoader(dataset, batch_size=4, shuffle=True)
    end = time.monotonic() + TRAIN_S
    for step, batch in enumerate(loader, 1):
        logits = model(batch["tokens"], batch["input_pos"], batch["mask"])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=IGNORE)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
        if time.monotonic() > end:
            break


if __name__ == "__main__":
    main()
