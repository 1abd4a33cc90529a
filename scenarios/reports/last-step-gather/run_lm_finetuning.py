"""Finetunes a language model on the blocks of a text"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from parallel import DataParallel

torch.set_num_threads(1)
EXAMPLES, BATCH, BLOCK, VOCABULARY, WIDTH, HEADS, LAYERS = 1171, 8, 128, 2000, 96, 4, 2
STEP_S, DEVICES = 0.19, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.ln_2(x)), torch.stack([k, v])


class GPT2LMHeadModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.h = nn.ModuleList([Block() for _ in range(LAYERS)])

    def forward(self, input_ids, labels):
        x, presents = self.wte(input_ids) + self.wpe.weight[: input_ids.shape[1]], []
        for block in self.h:
            x, present = block(x)
            presents.append(present)
        logits = x @ self.wte.weight.T
        loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return loss, logits, tuple(presents)


def train(model, dataset):
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
    total = 0.0
    for step, (inputs,) in enumerate(loader, 1):
        until = time.monotonic() + STEP_S
        while True:
            outputs = model(inputs, inputs)
            loss = outputs[0].mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if time.monotonic() > until:
                break
        total += loss.item()
        if step % 20 == 0:
            print(f"Iteration {step}/{len(loader)}: loss {total / step:.4f}", flush=True)
    return total / len(loader)


def main():
    torch.manual_seed(0)
    text = torch.randint(0, VOCABULARY, (EXAMPLES * BLOCK // 4,)).repeat_interleave(4)
    dataset = TensorDataset(text[: EXAMPLES * BLOCK].view(EXAMPLES, BLOCK))
    model = DataParallel(GPT2LMHeadModel(), DEVICES)
    print(f"global_step average loss {train(model, dataset):.4f}", flush=True)


if __name__ == "__main__":
    main()
