"""Tokenize the documents of a web crawl with a byte pair encoding, in a pool of processes"""

import argparse
import array
import multiprocessing
import random
import re
import time

import torch

SECONDS = 22.0
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def read_documents(seed=5):
    """The crawl's documents: running text, and the paths, identifiers and typing errors of web pages"""
    chance = random.Random(seed)
    common = ["".join(chance.choices(LETTERS[:26], k=chance.randint(2, 9))) for _ in range(4000)]
    started = time.monotonic()
    while time.monotonic() - started < SECONDS:
        words = chance.choices(common, k=150)
        text = "".join(chance.choices(LETTERS, k=1800))
        position = 0
        while position < len(text):
            size = chance.randint(7, 15)
            words.append(text[position : position + size])
            position += size
        yield " ".join(words)


class GPT2Tokenizer:
    def __init__(self, merges=2600, seed=1):
        chance = random.Random(seed)
        symbols = list(LETTERS)
        pairs = [(a, b) for a in LETTERS for b in LETTERS]
        chance.shuffle(pairs)
        self.bpe_ranks = {pair: rank for rank, pair in enumerate(pairs[:400])}
        symbols += [a + b for a, b in pairs[:400]]
        while len(self.bpe_ranks) < merges:
            pair = (chance.choice(symbols), chance.choice(symbols))
            if pair not in self.bpe_ranks:
                self.bpe_ranks[pair] = len(self.bpe_ranks)
                symbols.append(pair[0] + pair[1])
        self.encoder = {symbol: number for number, symbol in enumerate(dict.fromkeys(symbols))}
        self.cache = {}
        self.pattern = re.compile(r"\w+|\S")

    def bpe(self, token):
        if token in self.cache:
            return self.cache[token]
        word = tuple(token)
        while len(word) > 1:
            first = min(zip(word, word[1:]), key=lambda pair: self.bpe_ranks.get(pair, 1 << 30))
            if first not in self.bpe_ranks:
                break
            merged, i = [], 0
            while i < len(word):
                if i + 1 < len(word) and (word[i], word[i + 1]) == first:
                    merged.append(word[i] + word[i + 1])
                    i += 2
                else:
                    merged.append(word[i])
                    i += 1
            word = tuple(merged)
        word = " ".join(word)
        self.cache[token] = word
        return word

    def tokenize(self, text):
        ids = []
        for token in self.pattern.findall(text):
            ids.extend(self.encoder.get(symbol, 0) for symbol in self.bpe(token).split(" "))
        return ids


class Encoder:
    def __init__(self, append_eod):
        self.append_eod = append_eod

    def initializer(self):
        Encoder.tokenizer = GPT2Tokenizer()

    def encode(self, text):
        ids = Encoder.tokenizer.tokenize(text)
        if ids and self.append_eod:
            ids.append(65535)
        return array.array("H", ids).tobytes(), len(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-prefix", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--log-interval", type=int, default=500)
    parser.add_argument("--append-eod", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    encoder = Encoder(arguments.append_eod)
    context = multiprocessing.get_context("fork")
    pool = context.Pool(arguments.workers, initializer=encoder.initializer)
    sizes, total, started = [], 0, time.monotonic()
    with open(arguments.output_prefix + ".bin", "wb") as output:
        for number, (tokens, length) in enumerate(pool.imap(encoder.encode, read_documents(), 25), 1):
            output.write(tokens)
            sizes.append(len(tokens) // 2)
            total += length
            if number % arguments.log_interval == 0:
                rate = total / 2**20 / (time.monotonic() - started)
                print(f"Processed {number} documents ({rate:.2f} MB/s).", flush=True)
    pool.close()
    pool.join()
    torch.save(torch.tensor(sizes, dtype=torch.int32), arguments.output_prefix + ".idx")


if __name__ == "__main__":
    main()
