"""Hourly extracts: parse each extract into rows, encode the rows, and keep a score for the report"""

import csv
import io
import random
import time

import torch

from flows import flow, task

torch.set_num_threads(1)
SECONDS, ROWS = 28.0, 2500
COLUMNS = ("station", "hour", "load", "price", "wind")


@task
def extract(number):
    source, out = random.Random(number), io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in range(ROWS):
        wind = source.gauss(8, 3)
        writer.writerow((f"st-{row % 97:03d}", row // 97, f"{source.random():.4f}", f"{wind * 4:.3f}", f"{wind:.3f}"))
    return out.getvalue()


@task
def parse(text):
    return list(csv.DictReader(io.StringIO(text)))


@task
def encode(rows, model):
    values = torch.tensor([[float(row[name]) for name in ("load", "price", "wind")] for row in rows])
    with torch.inference_mode():
        return model(values)


@task
def score(codes):
    return f"{codes.var(0).mean().item():.5f}"


@flow
def features():
    torch.manual_seed(0)
    hidden = [torch.nn.Linear(3, 640), torch.nn.GELU(), torch.nn.Linear(640, 640), torch.nn.GELU()]
    model = torch.nn.Sequential(*hidden, torch.nn.Linear(640, 16))
    end, scores, number = time.monotonic() + SECONDS, [], 0
    while time.monotonic() < end:
        rows = parse(extract(number))
        scores.append(score(encode(rows, model)))
        number += 1
        if number % 40 == 0:
            print(f"{number} extracts, last score {scores[-1]}", flush=True)
    return scores


if __name__ == "__main__":
    print(f"{len(features())} extracts scored", flush=True)
