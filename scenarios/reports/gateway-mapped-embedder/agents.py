"""The agents of the gateway: documents of more and more subjects, and a search after every third of them"""

import json
import random
import socket
import sys

DOCUMENTS, WORDS, RANKS = 190, 3000, 320_000
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def piece(number):
    letters = ""
    while number or not letters:
        number, digit = divmod(number, 36)
        letters = DIGITS[digit] + letters
    return letters


def ask(stream, kind, text):
    stream.write(json.dumps({"kind": kind, "text": text}).encode() + b"\n")
    stream.flush()
    return json.loads(stream.readline())


def main():
    numbers = random.Random(4)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        with connection.makefile("rwb") as stream:
            for number in range(DOCUMENTS):
                known = int(RANKS * min(1, (number + 3) / (0.6 * DOCUMENTS)))
                text = " ".join(piece(numbers.randrange(known)) for _ in range(WORDS))
                ask(stream, "document", text)
                if number % 3 == 2:
                    ask(stream, "search", text[:400].rpartition(" ")[0])


if __name__ == "__main__":
    main()
