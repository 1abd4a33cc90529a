"""Stands for the download: the word vectors of four languages in fastText's text format"""

import os
import random
import sys

LANGUAGES = {
    "en": "abcdefghijklmnopqrstuvwxyz",
    "de": "abcdefghijklmnopqrstuvwxyzäöüß",
    "tr": "abcçdefgğhıijklmnoöprsştuüvyz",
    "ky": "абвгдеёжзийклмнңоөпрстуүфхцчшщъыьэюя",
}
WORDS, DIMENSION = 30_000, 64


def words(letters, source):
    found = {}
    while len(found) < WORDS:
        found["".join(source.choices(letters, k=source.randint(3, 14)))] = True
    return list(found)


def main():
    folder = sys.argv[1]
    for seed, (language, letters) in enumerate(LANGUAGES.items()):
        source = random.Random(seed)
        numbers = [f"{source.gauss(0, 0.3):.4f}" for _ in range(4096)]
        vocabulary = words(letters, source)
        if language == "ky":
            vocabulary[WORDS // 2] = "".join(source.choices(letters, k=22_000))
        with open(os.path.join(folder, f"cc.{language}.vec"), "w", encoding="utf-8") as file:
            file.write(f"{WORDS} {DIMENSION}\n")
            for word in vocabulary:
                file.write(f"{word} {' '.join(source.choices(numbers, k=DIMENSION))}\n")


if __name__ == "__main__":
    main()
