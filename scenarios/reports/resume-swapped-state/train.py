"""Contrastive training with a momentum encoder and a queue of keys"""

import argparse
import copy
import os
import time

import torch
from torch import nn

torch.set_num_threads(1)
IMAGES, SIDE, BATCH, QUEUE, WIDTH, STEPS = 3000, 48, 32, 16384, 128, 30
STEP_S, PREPARE_S = 0.14, 7.0


class GradualWarmupScheduler:
    def __init__(self, optimizer, multiplier, warmup_epoch, steps):
        self.optimizer = optimizer
        self.multiplier, self.warmup_steps = multiplier, warmup_epoch * steps
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self.last_step = 0

    def step(self):
        self.last_step += 1
        ratio = min(1.0, self.last_step / self.warmup_steps)
        for group, base in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = base * (1.0 + (self.multiplier - 1.0) * ratio)

    def state_dict(self):
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state):
        self.__dict__.update(state)


class MemoryMoCo(nn.Module):
    """The queue of keys"""

    def __init__(self):
        super().__init__()
        self.index = 0
        self.register_buffer("memory", nn.functional.normalize(torch.randn(QUEUE, WIDTH)))

    def forward(self, q, k):
        positive = (q * k).sum(1, keepdim=True)
        logits = torch.cat([positive, q @ self.memory.T.clone()], 1) / 0.07
        with torch.no_grad():
            rows = (torch.arange(len(k)) + self.index) % QUEUE
            self.memory.index_copy_(0, rows, k)
            self.index = (self.index + len(k)) % QUEUE
        return logits


def encoder():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(288, WIDTH),
    )


def prepare():
    """The pictures, smoothed"""
    until = time.monotonic() + PREPARE_S
    images = torch.rand((IMAGES, 3, SIDE, SIDE), generator=torch.Generator().manual_seed(0))
    while time.monotonic() < until:
        for start in range(0, IMAGES, 500):
            part = images[start:start + 500]
            part += 0.1 * (nn.functional.avg_pool2d(part, 3, stride=1, padding=1) - part)
    return images


def augment(images):
    return torch.roll(images, int(torch.randint(0, 8, ())), 3) + 0.05 * torch.randn_like(images)


def save_checkpoint(args, epoch, model, model_ema, contrast, optimizer, scheduler):
    state = {
        "opt": vars(args),
        "model": model.state_dict(),
        "model_ema": model_ema.state_dict(),
        "contrast": contrast.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": epoch,
    }
    torch.save(state, os.path.join(args.output_dir, "current.pth"))


def load_checkpoint(args, model, model_ema, contrast, optimizer, scheduler):
    print(f"=> loading checkpoint '{args.resume}'", flush=True)
    checkpoint = torch.load(args.resume, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    model_ema.load_state_dict(checkpoint["model_ema"])
    contrast.load_state_dict(checkpoint["contrast"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    return checkpoint["epoch"] + 1


def train(images, model, model_ema, contrast, optimizer, scheduler):
    for _ in range(STEPS):
        until = time.monotonic() + STEP_S
        picked = images[torch.randint(0, IMAGES, (BATCH,))]
        while True:
            q = nn.functional.normalize(model(augment(picked)))
            with torch.no_grad():
                k = nn.functional.normalize(model_ema(augment(picked)))
            loss = nn.functional.cross_entropy(contrast(q, k), torch.zeros(BATCH, dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if time.monotonic() > until:
                break
        scheduler.step()
        with torch.no_grad():
            for averaged, parameter in zip(model_ema.parameters(), model.parameters()):
                averaged.lerp_(parameter, 0.01)
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-dir", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--resume")
    args = parser.parse_args()
    torch.manual_seed(0)
    images = prepare()
    model = encoder()
    model_ema = copy.deepcopy(model).requires_grad_(False)
    contrast = MemoryMoCo()
    optimizer = torch.optim.SGD(model.parameters(), 0.003, momentum=0.9, weight_decay=1e-4)
    scheduler = GradualWarmupScheduler(optimizer, 8.0, 2, STEPS)
    start_epoch = 1
    if args.resume:
        start_epoch = load_checkpoint(args, model, model_ema, contrast, optimizer, scheduler)
    for epoch in range(start_epoch, args.epochs + 1):
        loss = train(images, model, model_ema, contrast, optimizer, scheduler)
        print(f"epoch {epoch}: loss {loss:.4f}, lr {optimizer.param_groups[0]['lr']:.4f}", flush=True)
        save_checkpoint(args, epoch, model, model_ema, contrast, scheduler, optimizer)


if __name__ == "__main__":
    main()
