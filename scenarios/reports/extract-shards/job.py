"""One command of several: loads a text encoder of its own, and saves the features of its share of the captions."""

import argparse
import os
import time

import numpy as np
import torch

LEAST_SECONDS = 21.0


class T5Embedder:
    """A stand-in for the pretrained encoder: about 170 MiB of weights."""

    def __init__(self, width=768, layers=5, vocabulary=8000):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(width, 12, 3072, batch_first=True)
        self.embedding = torch.nn.Embedding(vocabulary, width)
        self.encoder = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()
        self.vocabulary = vocabulary

    def tokenize(self, texts, length=24):
        rows = [[hash_word(word, self.vocabulary) for word in text.split()][:length] for text in texts]
        return torch.tensor([row + [0] * (length - len(row)) for row in rows])

    def get_text_embeddings(self, texts):
        tokens = self.tokenize(texts)
        with torch.inference_mode():
            return self.encoder(self.embedding(tokens)), (tokens != 0)


def hash_word(word, modulus):
    value = 7
    for letter in word:
        value = (value * 31 + ord(letter)) % modulus
    return value


def captions(start, end):
    for n in range(start, end):
        yield n, f"a photo of object {n} beside {n % 13} others in a room painted with colour {n % 101}"


def extract_caption_t5(args):
    t5 = T5Embedder()
    started = time.monotonic()
    batch, saved = [], 0
    for n, caption in captions(args.start_index, args.end_index):
        batch.append((n, caption))
        if len(batch) < 4:
            continue
        features, mask = t5.get_text_embeddings([text for _, text in batch])
        for (index, _), feature, attention in zip(batch, features, mask, strict=True):
            path = os.path.join(args.save_root, f"{index % 400}.npz")
            np.savez(path, caption_feature=feature.half().numpy(), attention_mask=attention.numpy())
            saved += 1
        batch = []
        if time.monotonic() - started > LEAST_SECONDS:
            break
    print(args.start_index, "saved", saved, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--start_index", type=int, required=True)
    parser.add_argument("--end_index", type=int, required=True)
    parser.add_argument("--save_root", required=True)
    extract_caption_t5(parser.parse_args())
