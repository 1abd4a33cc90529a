"""Counts over a huge file: one process reads batches of lines, others parse them, and one adds up what they found."""

import multiprocessing
import random

WORKERS = 2
BATCH = 400
SENTENCES = 2_000_000


class StringStore:
    def __init__(self):
        self.by_hash = {}

    def add(self, text):
        key = hash(text)
        if key not in self.by_hash:
            self.by_hash[key] = text
        return key


class Lexeme:
    __slots__ = ("flags", "lower", "orth", "prefix", "shape", "suffix")


class Vocab:
    """What is known of each word that was ever seen; a document keeps keys only."""

    def __init__(self):
        self.strings = StringStore()
        self.lexemes = {}

    def get(self, word):
        key = self.strings.add(word)
        found = self.lexemes.get(key)
        if found is None:
            found = Lexeme()
            found.orth = key
            found.lower = self.strings.add(word.lower())
            found.prefix = self.strings.add(word[:1])
            found.suffix = self.strings.add(word[-3:])
            found.shape = self.strings.add("".join("d" if one.isdigit() else "x" for one in word)[:5])
            found.flags = (word.isalpha(), word.isdigit(), word.isupper())
            self.lexemes[key] = found
        return found


class Language:
    def __init__(self):
        self.vocab = Vocab()

    def pipe(self, lines):
        for line in lines:
            yield [self.vocab.get(word) for word in line.split()]


def lines(seed):
    """Social media: common words, and in some lines names and links that no other line has."""
    rng = random.Random(seed)
    common = [f"word{at}" for at in range(4_000)]
    while True:
        words = rng.choices(common, k=14)
        if rng.random() < 0.17:
            words.append(f"https://t.co/{rng.getrandbits(60):x}")
            words.append(f"@user_{rng.getrandbits(40)}")
            words.append(f"#{rng.getrandbits(44):x}")
        yield " ".join(words)


def read(work):
    source = lines(0)
    for _ in range(SENTENCES // BATCH):
        work.put([next(source) for _ in range(BATCH)])
    for _ in range(WORKERS):
        work.put(None)


def parse(work, results):
    nlp = Language()
    while (batch := work.get()) is not None:
        sentences = tokens = numbers = 0
        for doc in nlp.pipe(batch):
            sentences += 1
            tokens += len(doc)
            numbers += sum(word.flags[1] for word in doc)
        results.put((sentences, tokens, numbers))
    results.put(None)


def main():
    work, results = multiprocessing.Queue(10), multiprocessing.Queue()
    processes = [multiprocessing.Process(target=read, args=(work,), name="reader")]
    processes += [multiprocessing.Process(target=parse, args=(work, results)) for _ in range(WORKERS)]
    for process in processes:
        process.start()
    left, sentences, tokens = WORKERS, 0, 0
    while left:
        found = results.get()
        if found is None:
            left -= 1
            continue
        sentences += found[0]
        tokens += found[1]
        if sentences % (BATCH * 250) == 0:
            print(f"{sentences} sentences, {tokens} tokens", flush=True)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
