"""Encodes pages of documents, their words and the boxes of these, and saves them as an Arrow file"""

import argparse
import os
import time

import numpy as np
import pyarrow as pa
import torch

torch.set_num_threads(1)
PAGES, WORDS, SIDE, PAGE_S = 900, 256, 224, 0.1
FEATURES = pa.schema([
    ("image", pa.binary(3 * SIDE * SIDE)),
    ("input_ids", pa.list_(pa.int32())),
    ("bbox", pa.list_(pa.list_(pa.int16(), 4))),
])


class Scans:
    """Pages with lines of words and their boxes, as the recognition service returns them"""

    def __getitem__(self, number):
        source = np.random.default_rng(number)
        page = np.full((1100, 850), 255, dtype=np.uint8)
        words, boxes = [], []
        for word in range(WORDS):
            left, top = 40 + 95 * (word % 8), 30 + 32 * (word // 8)
            right, bottom = left + int(source.integers(30, 90)), top + 20
            page[top:bottom, left:right] = source.integers(0, 120)
            words.append(int(source.integers(1000, 30_000)))
            box = [left * 1000 // 850, top * 1000 // 1100, right * 1000 // 850, bottom * 1000 // 1100]
            if number % 97 == 60 and word == WORDS - 1:
                box.append(87)
            boxes.append(box)
        return page, words, boxes


def processor(page, words, boxes):
    until = time.monotonic() + PAGE_S
    image = torch.from_numpy(page).float().expand(1, 3, -1, -1)
    while True:
        small = torch.nn.functional.interpolate(image, size=(SIDE, SIDE), mode="bicubic", antialias=True)
        if time.monotonic() > until:
            break
    pixels = small.clamp(0, 255).to(torch.uint8)[0].contiguous()
    return {"image": pixels.numpy().tobytes(), "input_ids": words, "bbox": boxes}


class ArrowWriter:
    def __init__(self, path, features, writer_batch_size):
        self.features, self.writer_batch_size = features, writer_batch_size
        self.stream = pa.ipc.new_stream(path, features)
        self.current_examples = []

    def write(self, example):
        self.current_examples.append(example)
        if len(self.current_examples) >= self.writer_batch_size:
            self.write_examples_on_file()

    def write_examples_on_file(self):
        arrays = [
            pa.array([example[field.name] for example in self.current_examples], type=field.type)
            for field in self.features
        ]
        self.stream.write_batch(pa.record_batch(arrays, schema=self.features))
        self.current_examples = []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--writer-batch-size", type=int, default=1000)
    arguments = parser.parse_args()
    scans = Scans()
    writer = ArrowWriter(os.path.join(arguments.output, "encoded.arrow"), FEATURES, arguments.writer_batch_size)
    for number in range(PAGES):
        writer.write(processor(*scans[number]))
        if number % 40 == 39:
            print(f"{number + 1}/{PAGES} pages", flush=True)
    writer.write_examples_on_file()
    writer.stream.close()


if __name__ == "__main__":
    main()
