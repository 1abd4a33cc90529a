"""Stands in for the search: answers each question on the standard input with a line of passages"""

import json
import random
import sys

PASSAGES, WORDS = 40, 130_000


def main():
    numbers = random.Random(3)
    vocabulary = ["".join(numbers.choices("abcdefghijklmnoprstuvwy", k=numbers.randint(4, 10))) for _ in range(9000)]
    for _ in sys.stdin:
        words = numbers.choices(vocabulary, k=WORDS)
        size = WORDS // PASSAGES
        passages = [" ".join(words[first : first + size]) for first in range(0, WORDS, size)]
        sys.stdout.write(json.dumps(passages) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
