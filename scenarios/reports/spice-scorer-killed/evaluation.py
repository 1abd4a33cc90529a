"""The challenge's evaluation: measures of n-grams, and semantic propositions by a program of its own"""

import collections
import json
import math
import os
import subprocess

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
REFERENCES, WORDS_EACH = 10, 12
VOCABULARY = [f"{start}{middle}{end}" for start in "bdfglmprst" for middle in ("a", "ei", "o", "u") for end in "klnrst"]


def sentences(seed, images):
    """The candidate and the references of one image after the other"""
    generator = np.random.default_rng(seed)
    for _ in range(images):
        theme = generator.integers(0, len(VOCABULARY), 16)
        picks = theme[generator.integers(0, len(theme), (1 + REFERENCES, WORDS_EACH))]
        yield [[VOCABULARY[word] for word in row] for row in picks]


def ngrams(words, length):
    return collections.Counter(tuple(words[at : at + length]) for at in range(len(words) - length + 1))


class Bleu:
    def __init__(self):
        self.correct, self.guess = np.zeros(4), np.zeros(4)

    def add(self, candidate, references):
        for length in range(1, 5):
            found, allowed = ngrams(candidate, length), collections.Counter()
            for reference in references:
                allowed |= ngrams(reference, length)
            self.correct[length - 1] += sum((found & allowed).values())
            self.guess[length - 1] += sum(found.values())

    def compute_score(self):
        return math.exp(np.log((self.correct + 1e-9) / (self.guess + 1e-9)).mean())


class Rouge:
    def __init__(self):
        self.scores = []

    def add(self, candidate, references):
        best = 0.0
        for reference in references[:3]:
            row = np.zeros(len(reference) + 1)
            for word in candidate:
                before = row.copy()
                for at, other in enumerate(reference, 1):
                    row[at] = before[at - 1] + 1 if word == other else max(before[at], row[at - 1])
            best = max(best, row[-1] / len(reference))
        self.scores.append(best)

    def compute_score(self):
        return float(np.mean(self.scores))


class Spice:
    def compute_score(self, in_path, out_path):
        command = ["perl", os.path.join(HERE, "spice.pl"), "-in", in_path, "-out", out_path, "-subset", "-silent"]
        subprocess.check_call(command, cwd=HERE)
        with open(out_path) as file:
            scores = [float(line) for line in file]
        return sum(scores) / len(scores)


def evaluate(name, images, folder):
    bleu, rouge = Bleu(), Rouge()
    in_path = os.path.abspath(os.path.join(folder, f"{name}.txt"))
    out_path = os.path.abspath(os.path.join(folder, f"{name}.out"))
    with open(in_path, "w") as file:
        for number, (candidate, *references) in enumerate(sentences(len(name), images)):
            if number % max(1, images // 250) == 0:
                bleu.add(candidate, references)
                rouge.add(candidate, references)
            file.write("\t".join(" ".join(words) for words in (candidate, *references)) + "\n")
    print(f"Bleu_4: {bleu.compute_score():.3f}, ROUGE_L: {rouge.compute_score():.3f}", flush=True)
    print("computing SPICE score...", flush=True)
    spice = Spice().compute_score(in_path, out_path)
    print(f"SPICE: {spice:.3f}", flush=True)
    return {"Bleu_4": bleu.compute_score(), "ROUGE_L": rouge.compute_score(), "SPICE": spice}
