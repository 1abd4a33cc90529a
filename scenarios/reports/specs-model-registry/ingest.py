"""Reads items of the feed, validates their documents by their specification, and scores them"""

import json
import sys
import time
import zlib

import torch
from models import FloatType, Model, StringType, ValidationError
from torch import nn

BUCKETS, ITEM_S = 20000, 0.0082
TYPES = {"string": StringType, "number": FloatType, "choice": StringType}


def model_from_spec(name, fields):
    attributes = {
        key: TYPES[spec["type"]](
            required=spec["required"],
            choices=spec.get("choices"),
            metadata={"label": spec["label"], "help": spec["help"]},
        )
        for key, spec in fields.items()
    }
    return type(name, (Model,), attributes)


def buckets(document):
    return [zlib.crc32(f"{key.split('_')[0]}={value}".encode()) % BUCKETS for key, value in document.items()]


@torch.inference_mode()
def score(network, documents, until):
    tokens = torch.tensor([buckets(document) for document in documents])
    while True:
        scores = network(tokens)
        if time.monotonic() > until:
            return scores.mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = nn.Sequential(nn.EmbeddingBag(BUCKETS, 64), nn.ReLU(), nn.Linear(64, 1))
    started, total, rejected = time.monotonic(), 0.0, 0
    for number, line in enumerate(sys.stdin, 1):
        item = json.loads(line)
        content_model = model_from_spec(item["name"], item["fields"])
        valid = []
        for document in item["documents"]:
            try:
                valid.append(content_model(document).validate().to_primitive())
            except ValidationError:
                rejected += 1
        if valid:
            total += score(network, valid, started + number * ITEM_S)
        if number % 200 == 0:
            print(f"{number} items, {rejected} documents rejected, mean score {total / number:.4f}", flush=True)


if __name__ == "__main__":
    main()
