"""A replica: holds the weights of a text classifier, and answers requests from its standard input"""

import json
import sys
import zlib

import numpy as np


class TextClassifier:
    BUCKETS, WIDTH, LABELS = 40_000, 128, 20

    def __init__(self, version):
        generator = np.random.default_rng(version)
        self.embedding = generator.standard_normal((self.BUCKETS, self.WIDTH), dtype=np.float32)
        self.head = generator.standard_normal((self.WIDTH, self.LABELS), dtype=np.float32)
        self.count = 0

    def __call__(self, text):
        self.count += 1
        words = text.split()
        grams = words + [" ".join(pair) for pair in zip(words, words[1:])]
        rows = [zlib.crc32(gram.encode()) % self.BUCKETS for gram in grams]
        scores = self.embedding[rows].mean(0) @ self.head
        return {"label": int(scores.argmax()), "count": self.count}


def main():
    classifier = TextClassifier(int(sys.argv[1]))
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(classifier(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
