"""Fine-tunes a reward model: first the head, then one block of the backbone after the other"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

torch.set_num_threads(2)
WIDTH, BLOCKS = 1792, 6
FIRST_THAW_S, THAW_EVERY_S, SECONDS = 3.0, 2.0, 31.0


class Features(IterableDataset):
    """Pooled features of image and text pairs, with the answer that people preferred"""

    def __iter__(self):
        generator = torch.Generator().manual_seed(9)
        direction = torch.randn(WIDTH, generator=generator)
        while True:
            chosen = torch.randn(WIDTH, generator=generator)
            rejected = torch.randn(WIDTH, generator=generator)
            if chosen @ direction < rejected @ direction:
                chosen, rejected = rejected, chosen
            yield chosen, rejected


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + 0.3 * nn.functional.gelu(self.mix(self.norm(x)))


class RewardModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(BLOCKS)])
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x).squeeze(1)


class ThawSchedule:
    """Unfreezes the blocks from the last to the first"""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.frozen = list(model.blocks)
        self.started = time.monotonic()
        for block in self.frozen:
            block.requires_grad_(False)

    def step(self):
        passed = time.monotonic() - self.started
        thawed = BLOCKS - len(self.frozen)
        if self.frozen and passed > FIRST_THAW_S + thawed * THAW_EVERY_S:
            block = self.frozen.pop()
            block.requires_grad_(True)
            self.optimizer.add_param_group({"params": list(block.parameters()), "lr": 2e-5})
            print(f"{thawed + 1} of {BLOCKS} blocks train", flush=True)
        return passed


def main():
    torch.manual_seed(0)
    model = RewardModel()
    optimizer = torch.optim.AdamW(model.head.parameters(), lr=1e-3)
    schedule = ThawSchedule(model, optimizer)
    loader = DataLoader(Features(), batch_size=24, num_workers=1)
    for step, (chosen, rejected) in enumerate(loader, 1):
        passed = schedule.step()
        rewards = model(torch.cat([chosen, rejected]))
        margin = rewards[: len(chosen)] - rewards[len(chosen) :]
        loss = -nn.functional.logsigmoid(margin).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
        if passed > SECONDS:
            break


if __name__ == "__main__":
    main()
