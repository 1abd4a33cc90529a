"""Encode a corpus with two worker processes; each keeps the encodings of the words that it has seen, within a budget"""

import array
import hashlib
import multiprocessing
import multiprocessing.connection
import random
import sys
import time

import torch

SECONDS = 27.0
BUDGET = 96 * 2**20
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def make_vocabulary(size=6000, seed=3):
    chance = random.Random(seed)
    pieces = list(LETTERS) + ["##" + letter for letter in LETTERS]
    while len(pieces) < size:
        piece = "".join(chance.choices(LETTERS, k=chance.randint(2, 4)))
        pieces.append(piece if chance.random() < 0.3 else "##" + piece)
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


class WordCache:
    """Encodings by word. At the budget it starts anew: a miss costs time only, and old words seldom come again"""

    def __init__(self, budget):
        self.budget, self.used, self.wipes = budget, 0, 0
        self.table = {}

    def get(self, word):
        return self.table.get(word)

    def put(self, word, encoded):
        size = sys.getsizeof(word) + sys.getsizeof(encoded) + 100
        if self.used + size > self.budget:
            self.table = {}
            self.used, self.wipes = 0, self.wipes + 1
        self.table[word] = encoded
        self.used += size


class Encoder:
    def __init__(self, vocabulary, budget=BUDGET):
        self.vocabulary, self.cache = vocabulary, WordCache(budget)

    def word(self, word):
        encoded = self.cache.get(word)
        if encoded is None:
            ids, start = array.array("H"), 0
            while start < len(word):
                for end in range(min(len(word), start + 4), start, -1):
                    piece = word[start:end] if start == 0 else "##" + word[start:end]
                    if piece in self.vocabulary:
                        ids.append(self.vocabulary[piece])
                        break
                start = end
            encoded = ids.tobytes()
            self.cache.put(word, encoded)
        return encoded

    def document(self, text):
        return b"".join(map(self.word, text.split()))


def documents(rank, started):
    chance = random.Random(rank)
    while time.monotonic() - started < SECONDS:
        letters = "".join(chance.choices(LETTERS, k=6000))
        cuts, position = [], 0
        while position < len(letters):
            size = chance.randint(5, 18)
            cuts.append(letters[position : position + size])
            position += size
        yield " ".join(cuts)


def work(rank, started, connection):
    torch.set_num_threads(1)
    encoder = Encoder(make_vocabulary())
    digest, tokens, lengths = hashlib.sha256(), 0, torch.zeros(64, dtype=torch.int64)
    for number, text in enumerate(documents(rank, started), 1):
        data = encoder.document(text)
        digest.update(data)
        tokens += len(data) // 2
        lengths += torch.bincount(torch.tensor([len(word) for word in text.split()]), minlength=64)[:64]
        if number % 400 == 0:
            connection.send((rank, number, tokens, encoder.cache.wipes))
    connection.send((rank, None, tokens, digest.hexdigest()))
    connection.close()


def main():
    started = time.monotonic()
    context = multiprocessing.get_context("fork")
    workers, ends = [], []
    for rank in range(2):
        mine, theirs = context.Pipe(duplex=False)
        workers.append(context.Process(target=work, args=(rank, started, theirs), name=f"encode-{rank}"))
        workers[-1].start()
        theirs.close()
        ends.append(mine)
    while ends:
        for end in multiprocessing.connection.wait(ends):
            try:
                rank, number, tokens, last = end.recv()
            except EOFError:
                ends.remove(end)
                continue
            if number is None:
                print(f"worker {rank}: {tokens} tokens, sha256 {last[:16]}", flush=True)
            elif number % 2000 == 0:
                print(f"worker {rank}: document {number}, {tokens} tokens, {last} wipes", flush=True)
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
