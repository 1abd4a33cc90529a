"""AdamW on buckets of weights, with its own values in 32 bits"""

import os
import time

import torch

KEYS = ("master", "exp_avg", "exp_avg_sq")
FILE_S = 0.9


class FP32AdamW:
    def __init__(self, buckets, lr=1e-4, betas=(0.9, 0.95), eps=1e-8, decay=0.1):
        self.buckets, self.lr, self.betas, self.eps, self.decay, self.steps = buckets, lr, betas, eps, decay, 0
        self.state = [
            {
                "master": bucket.detach().clone(),
                "exp_avg": torch.full_like(bucket, 0.0),
                "exp_avg_sq": torch.full_like(bucket, 0.0),
            }
            for bucket in buckets
        ]

    @torch.no_grad()
    def update(self, number, grad):
        """The step of one bucket, as soon as its gradient is there"""
        state, (first, second) = self.state[number], self.betas
        state["exp_avg"].lerp_(grad, 1 - first)
        state["exp_avg_sq"].mul_(second).addcmul_(grad, grad, value=1 - second)
        state["master"].mul_(1 - self.lr * self.decay)
        denominator = grad.copy_(state["exp_avg_sq"]).sqrt_().add_(self.eps)
        state["master"].addcdiv_(state["exp_avg"], denominator, value=-self.lr)
        self.buckets[number].copy_(state["master"])

    def save_shard(self, folder, rank):
        for number, state in enumerate(self.state):
            with open(os.path.join(folder, f"rank{rank}_bucket{number:02}.pt"), "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())

    def load_shard(self, folder, rank):
        shard = {}
        for number in range(len(self.buckets)):
            begin = time.monotonic()
            path = os.path.join(folder, f"rank{rank}_bucket{number:02}.pt")
            shard[number] = torch.load(path, map_location="cpu", weights_only=True)
            # What was read must be finite, on each look at it
            while True:
                for key in KEYS:
                    if not torch.isfinite(shard[number][key].sum()):
                        raise ValueError(f"{path}: {key} is not finite")
                if time.monotonic() > begin + FILE_S:
                    break
            if rank == 0:
                print(f"resume: read bucket {number + 1} of {len(self.buckets)}", flush=True)
        for number, state in enumerate(self.state):
            for key in KEYS:
                state[key].copy_(shard[number][key])
            with torch.no_grad():
                self.buckets[number].copy_(state["master"])
