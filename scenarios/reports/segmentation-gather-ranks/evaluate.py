"""Instance segmentation on two ranks: after each batch every rank gathers the masks, as accelerate's gather() does."""

import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

WORLD_SIZE, SECONDS = 2, 20.0
BATCH, QUERIES, SIDE = 4, 4, 64


class MaskHead(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.queries = nn.Parameter(torch.randn(QUERIES, width))
        self.classes = nn.Linear(width, 20)

    def forward(self, pixels):
        features = self.body(pixels)
        masks = torch.einsum("qc,nchw->nqhw", self.queries, features)
        return {"masks": masks.sigmoid(), "logits": self.classes(self.queries).expand(len(pixels), -1, -1)}


class Accelerator:
    def __init__(self):
        self.num_processes = dist.get_world_size()
        self.is_main_process = dist.get_rank() == 0

    def gather_for_metrics(self, tensor):
        parts = [torch.empty_like(tensor) for _ in range(self.num_processes)]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts)


class Evaluator:
    def __init__(self):
        self.post_processed_predictions, self.post_processed_targets = [], []

    def update(self, predictions, targets):
        self.post_processed_predictions.append(predictions)
        self.post_processed_targets.append(targets)

    def compute(self):
        pairs = zip(self.post_processed_predictions, self.post_processed_targets)
        overlaps = [(((p["masks"] > 0.5) & t).sum() / t.sum().clamp(min=1)).item() for p, t in pairs]
        return sum(overlaps) / len(overlaps)


@torch.no_grad()
def evaluation_loop(model, accelerator, evaluator, rank):
    end, step = time.monotonic() + SECONDS, 0
    go_on = torch.ones(1)
    while go_on.item():
        generator = torch.Generator().manual_seed(step * WORLD_SIZE + rank)
        pixels = torch.rand(BATCH, 3, 2 * SIDE, 2 * SIDE, generator=generator)
        targets = nn.functional.avg_pool2d(pixels, 2)[:, :1].expand(-1, QUERIES, -1, -1) > 0.5
        outputs = {name: accelerator.gather_for_metrics(value) for name, value in model(pixels).items()}
        targets = accelerator.gather_for_metrics(targets.byte()).bool()
        evaluator.update({name: value.cpu() for name, value in outputs.items()}, targets.cpu())
        go_on.fill_(float(time.monotonic() < end))
        dist.broadcast(go_on, 0)
        step += 1
        if accelerator.is_main_process and step % 50 == 0:
            print(f"evaluated {step * BATCH * WORLD_SIZE} images", flush=True)
    return evaluator.compute()


def main(rank, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD_SIZE)
    torch.manual_seed(0)
    overlap = evaluation_loop(MaskHead().eval(), Accelerator(), Evaluator(), rank)
    print(f"[rank {rank}] overlap {overlap:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(main, args=(os.path.join(folder, "store"),), nprocs=WORLD_SIZE)
