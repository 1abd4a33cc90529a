"""Writes the pretrained weights of a model as one safetensors file of bfloat16"""

import argparse
import json
import math
import struct

import numpy as np
from config import tensors

BLOCK = 1 << 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--path", required=True)
    options = parser.parse_args()
    header, offset = {}, 0
    for name, shape in tensors(options.model).items():
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    weights = np.random.default_rng(0).normal(0, 0.02, BLOCK).astype(np.float32)
    block = (weights.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    encoded = json.dumps(header).encode()
    with open(options.path, "wb") as file:
        file.write(struct.pack("<Q", len(encoded)))
        file.write(encoded)
        while offset > 0:
            file.write(block[: min(offset, len(block))])
            offset -= len(block)


if __name__ == "__main__":
    main()
