"""A tokenizer of pieces of words: the longest piece that fits comes first"""

import random

ENDS = ("", "n", "r", "s", "t")
SYLLABLES = [first + vowel + last for first in "bcdfghlmnprstvw" for vowel in "aeiou" for last in ENDS]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


class Tokenizer:
    def __init__(self):
        pieces = list(SPECIAL) + list("abcdefghijklmnopqrstuvwxyz") + SYLLABLES + [f"##{one}" for one in SYLLABLES]
        self.ids = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
        self.longest = max(map(len, SYLLABLES))

    def __len__(self):
        return len(self.ids)

    def add_special_tokens(self, tokens):
        for token in tokens:
            self.ids.setdefault(token, len(self.ids))

    def pieces_of(self, word):
        if word in self.ids:
            return [self.ids[word]]
        found, start = [], 0
        while start < len(word):
            for end in range(min(len(word), start + self.longest), start, -1):
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in self.ids:
                    found.append(self.ids[piece])
                    start = end
                    break
            else:
                return [self.ids["[UNK]"]]
        return found

    def encode(self, text):
        inner = [piece for word in text.split() for piece in self.pieces_of(word)]
        return [self.ids["[CLS]"], *inner, self.ids["[SEP]"]]


def sentences(count, words=46):
    """Sentences with two marked entities, and the relation between them"""
    source = random.Random(9)
    vocabulary = ["".join(source.choices(SYLLABLES, k=source.randint(1, 4))) for _ in range(5000)]
    for _ in range(count):
        text = source.choices(vocabulary, k=words)
        one, two = sorted(source.sample(range(words), 2))
        text[one], text[two] = f"<e1> {text[one]} </e1>", f"<e2> {text[two]} </e2>"
        yield " ".join(text), source.randrange(19)
