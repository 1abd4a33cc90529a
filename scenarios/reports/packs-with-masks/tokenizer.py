"""A byte pair encoding, and the template of an instruction"""

import random

SPECIAL = {"begin": 0, "end": 1, "pad": 2, "unknown": 3}
PHRASE = 12


class BytePairTokenizer:
    def __init__(self, letters, merges):
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        pieces = [*letters, *("".join(pair) for pair in merges)]
        self.vocabulary = {piece: number for number, piece in enumerate(pieces, len(SPECIAL))}

    def __len__(self):
        return len(self.vocabulary) + len(SPECIAL)

    def encode_piece(self, text):
        pieces = list(text)
        while len(pieces) > 1:
            best, place = None, 0
            for index in range(len(pieces) - 1):
                rank = self.ranks.get((pieces[index], pieces[index + 1]))
                if rank is not None and (best is None or rank < best):
                    best, place = rank, index
            if best is None:
                break
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        return [self.vocabulary.get(piece, SPECIAL["unknown"]) for piece in pieces]

    def encode(self, text):
        tokens, words = [SPECIAL["begin"]], text.split()
        # The merges do not cross the space, but a phrase is merged as a whole
        for start in range(0, len(words), PHRASE):
            tokens.extend(self.encode_piece("_".join(words[start : start + PHRASE])))
        return [*tokens, SPECIAL["end"]]


def build_tokenizer(words, size, seed=0):
    """Merges of the most frequent pairs of the words"""
    numbers = random.Random(seed)
    counts = {}
    for word in numbers.choices(words, k=20_000):
        for first, second in zip(word, word[1:]):
            counts[first, second] = counts.get((first, second), 0) + 1
    merges = sorted(counts, key=counts.get, reverse=True)[:size]
    return BytePairTokenizer(sorted(set("_".join(words))), merges)
