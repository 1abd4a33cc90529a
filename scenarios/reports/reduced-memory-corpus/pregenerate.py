"""Writes examples of masked text, a line of JSON each, for two epochs: a trial and the whole corpus."""

import json
import os
import random
import sys

EXAMPLES = (3_000, 45_000)
LENGTH = 60


def main():
    choose = random.Random(0)
    pool = [f"w{n}" for n in range(5000)]
    for epoch, count in enumerate(EXAMPLES):
        with open(os.path.join(sys.argv[1], f"epoch_{epoch}.json"), "w") as file:
            for _ in range(count):
                tokens = choose.choices(pool, k=choose.randint(20, LENGTH))
                masked = sorted(choose.sample(range(len(tokens)), 4))
                labels = [tokens[n] for n in masked]
                ngrams = [[n, n + 2] for n in masked]
                json.dump({"tokens": tokens, "masked": masked, "labels": labels, "ngrams": ngrams}, file)
                file.write("\n")


if __name__ == "__main__":
    main()
