"""Writes the pages of a wiki, as its dump has them, until the time is over"""

import hashlib
import random
import sys
import time

SECONDS, PAGE_S, PARAGRAPHS, LIST_AT = 28.0, 0.0045, 135, 400
WORDS = ("river", "county", "station", "district", "railway", "album", "village", "season", "species", "bridge")


def paragraphs(source):
    """The paragraphs that pages are made of, with links, references and a few templates"""
    for _ in range(500):
        words = source.choices(WORDS, k=72)
        words[9] = f"[[{words[9].title()} Line|{words[9]}]]"
        words[30] += "<ref name=a>{{cite|" + words[31] + "}}</ref>"
        words[50] = f"'''{words[50]}'''"
        yield " ".join(words) + "."


def main():
    source = random.Random(4)
    pool, out = list(paragraphs(source)), sys.stdout
    begin, number = time.monotonic(), 0
    while time.monotonic() < begin + SECONDS:
        if number == LIST_AT:
            title, lines = "List of lists", ["{{lists|" + " ".join(WORDS) + "}}"] * 400
        else:
            title, lines = f"{source.choice(WORDS)} {number}", source.choices(pool, k=PARAGRAPHS)
        out.write(f"<page>\n<title>{title}</title>\n<text>\n")
        digest = hashlib.sha1()
        for line in lines:
            out.write(line + "\n")
            digest.update(line.encode())
        # The checksum of a page is over the page and all its earlier revisions
        number += 1
        while time.monotonic() < begin + number * PAGE_S:
            digest.update(digest.digest() * 400)
        out.write(f"</text>\n<sha1>{digest.hexdigest()}</sha1>\n</page>\n")


if __name__ == "__main__":
    main()
