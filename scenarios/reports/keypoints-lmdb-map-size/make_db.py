"""Training data of multi-person pose estimation: heat maps and part fields of every image, into one data base"""

import argparse
import os
import struct
import time
import zlib

import torch
from database import Environment

HEIGHT, WIDTH, STRIDE = 368, 368, 8
PARTS, LIMBS = 18, [(1, 2), (2, 3), (3, 4), (1, 5), (5, 6), (6, 7), (1, 8), (8, 9), (9, 10), (1, 11), (11, 12), (0, 1)]


def grid():
    rows, columns = torch.arange(HEIGHT // STRIDE), torch.arange(WIDTH // STRIDE)
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"), -1) * STRIDE + STRIDE / 2


def heat_maps(people, places, sigma=7.0):
    distances = ((places[None, None] - people[:, :, None, None]) ** 2).sum(-1)
    return torch.exp(-distances / (2 * sigma**2)).amax(0)


def part_fields(people, places, width=8.0):
    fields = []
    for first, second in LIMBS:
        start, stop = people[:, first], people[:, second]
        direction = torch.nn.functional.normalize(stop - start, dim=-1)
        offset = places[None] - start[:, None, None]
        along = (offset * direction[:, None, None]).sum(-1)
        across = (offset[..., 0] * direction[:, None, None, 1] - offset[..., 1] * direction[:, None, None, 0]).abs()
        length = (stop - start).norm(dim=-1)[:, None, None]
        inside = ((along >= 0) & (along <= length) & (across <= width)).float()
        fields.append((inside[..., None] * direction[:, None, None]).sum(0) / inside.sum(0).clamp(min=1)[..., None])
    return torch.cat(fields, -1).permute(2, 0, 1)


def generate(path, seconds):
    generator, places = torch.Generator().manual_seed(5), grid()
    started, count = time.monotonic(), 0
    with open(path, "wb") as file:
        while time.monotonic() - started < seconds:
            people = torch.rand(6, PARTS, 2, generator=generator) * torch.tensor([HEIGHT, WIDTH])
            maps = torch.cat([heat_maps(people, places), part_fields(people, places)])
            sample = zlib.compress((maps * 127).to(torch.int8).numpy().tobytes(), 6)
            file.write(struct.pack("<I", len(sample)) + sample)
            count += 1
            if count % 300 == 0:
                print(f"{count} images", flush=True)
    return count


def write_database(samples, folder):
    environment = Environment(folder, map_size=int(1e12))
    with open(samples, "rb") as file, environment:
        number = 0
        while head := file.read(4):
            number += 1
            environment.put(f"{number:07d}".encode(), file.read(struct.unpack("<I", head)[0]))
    return number


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    samples = os.path.join(arguments.work, "samples.bin")
    print(f"{generate(samples, arguments.seconds)} images generated", flush=True)
    print(f"{write_database(samples, os.path.join(arguments.work, 'train_lmdb'))} images written", flush=True)


if __name__ == "__main__":
    main()
