"""A rank: loads the experts of a model layer by layer, quantizes them, and measures the error on calibration data"""

import os
import time

import torch
import torch.distributed as dist
from dist_cache import DistributedHostCache

torch.set_num_threads(1)
LAYERS, EXPERTS, ROWS, COLUMNS, BITS, LAYER_S = 60, 128, 32, 128, 4, 0.42
PROJECTIONS, PARTS = ("gate", "up", "down"), ("weight_packed", "weight_scale", "weight_zero")


def names(layer):
    return [
        f"layers.{layer}.experts.{expert}.{projection}.{part}"
        for expert in range(EXPERTS)
        for projection in PROJECTIONS
        for part in PARTS
    ]


def pack(levels):
    """Eight levels of four bits in each word of 32"""
    words = levels.view(ROWS, COLUMNS // 8, 8).to(torch.int64) << torch.arange(0, 32, BITS)
    total = words.sum(2)
    return torch.where(total >= 1 << 31, total - (1 << 32), total).to(torch.int32)


def unpack(packed):
    shifts = torch.arange(0, 32, BITS, dtype=torch.int32)
    return ((packed[:, :, None] >> shifts) & 15).reshape(ROWS, COLUMNS)


def quantized(layer):
    generator = torch.Generator().manual_seed(layer)
    for _ in range(EXPERTS):
        for _ in PROJECTIONS:
            weight = torch.randn(ROWS, COLUMNS, generator=generator)
            low, high = weight.aminmax(dim=1)
            scale = (high - low) / 15
            levels = ((weight - low[:, None]) / scale[:, None]).round().clamp(0, 15).to(torch.uint8)
            yield from (pack(levels), scale, low)


def calibrate(cache, layer, rows, until):
    """The mean of the outputs of as many experts as there is time for"""
    total, count = 0.0, 0
    while time.monotonic() < until:
        for projection in PROJECTIONS:
            stem = f"layers.{layer}.experts.{count % EXPERTS}.{projection}"
            packed, scale, zero = (cache.get(f"{stem}.{part}") for part in PARTS)
            weight = unpack(packed) * scale[:, None] + zero[:, None]
            total += torch.nn.functional.silu(rows @ weight.T).mean().item()
        count += 1
    return total / max(count, 1)


def main():
    dist.init_process_group("gloo")
    rank, cache = int(os.environ["RANK"]), DistributedHostCache()
    rows = torch.randn(64, COLUMNS, generator=torch.Generator().manual_seed(7))
    for layer in range(LAYERS):
        begin = time.monotonic()
        cache.put(names(layer), list(quantized(layer)) if rank == 0 else None)
        mean = torch.tensor(calibrate(cache, layer, rows, begin + LAYER_S))
        dist.all_reduce(mean)
        if rank == 0 and layer % 5 == 0:
            print(f"layer {layer}: {cache.bytes >> 10} KiB dispatched, mean {mean.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
