"""Extracts the plain text of the articles of a dump: a mapping process, extractors, and a process that writes"""

import argparse
import os
import re
import sys
import time
from multiprocessing import Process, Queue

TEMPLATES = {"lists": "{{index|%s}}", "index": "{{navbox|%s}}", "navbox": "{{lists|%s}}", "cite": "%s"}
TEMPLATE = re.compile(r"\{\{(\w+)\|([^{}]*)\}\}")
REFERENCE, LINK = re.compile(r"<ref[^>]*>.*?</ref>"), re.compile(r"\[\[(?:[^|\]]*\|)?([^\]]*)\]\]")
QUOTES, BLANKS = re.compile(r"'{2,5}"), re.compile(r"[ \t]+")
EXPAND_S, LINES_PER_FILE = 27.0, 20000


def pages_from(lines):
    title, text, inside = None, [], False
    for line in lines:
        if line.startswith("<title>"):
            title = line[len("<title>") : line.index("</title>")]
        elif line == "<text>\n":
            text, inside = [], True
        elif line == "</text>\n":
            inside = False
            yield title, text
        elif inside:
            text.append(line)


def expand(text):
    """Replaces templates until none is left, or the page has had its time"""
    until = time.monotonic() + EXPAND_S
    while "{{" in text and time.monotonic() < until:
        text = TEMPLATE.sub(lambda found: TEMPLATES.get(found[1], "%s") % found[2], text)
    return text


def extract(title, lines):
    text = expand(REFERENCE.sub("", "".join(lines)))
    text = BLANKS.sub(" ", QUOTES.sub("", LINK.sub(r"\1", text)))
    return f'<doc title="{title}">\n{text}</doc>\n'


def extract_process(jobs, output):
    while True:
        job = jobs.get()
        if job is None:
            break
        ordinal, title, lines = job
        output.put((ordinal, extract(title, lines)))


class OutputSplitter:
    def __init__(self, folder):
        self.folder, self.lines, self.files, self.file = folder, 0, 0, None
        os.makedirs(folder, exist_ok=True)

    def write(self, text):
        if self.file is None or self.lines >= LINES_PER_FILE:
            self.close()
            self.file = open(os.path.join(self.folder, f"wiki_{self.files:02}"), "w")
            self.files, self.lines = self.files + 1, 0
        self.file.write(text)
        self.lines += text.count("\n")

    def close(self):
        if self.file is not None:
            self.file.close()


def reduce_process(output, folder):
    splitter, ready, ordinal = OutputSplitter(folder), {}, 0
    begin = shown = time.monotonic()
    while True:
        if ordinal in ready:
            splitter.write(ready.pop(ordinal))
            ordinal += 1
            continue
        done = output.get()
        if done is None:
            break
        ready[done[0]] = done[1]
        if time.monotonic() > shown + 4:
            shown = time.monotonic()
            print(f"wrote {ordinal} articles in {shown - begin:.0f} s", file=sys.stderr, flush=True)
    splitter.close()
    print(f"wrote {ordinal} articles", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", default="text")
    arguments = parser.parse_args()
    jobs, output = Queue(maxsize=10 * arguments.processes), Queue(maxsize=10 * arguments.processes)
    reducer = Process(target=reduce_process, args=(output, arguments.output))
    reducer.start()
    extractors = [Process(target=extract_process, args=(jobs, output), daemon=True) for _ in range(arguments.processes)]
    for extractor in extractors:
        extractor.start()
    for ordinal, (title, lines) in enumerate(pages_from(sys.stdin)):
        jobs.put((ordinal, title, lines))
    for _ in extractors:
        jobs.put(None)
    for extractor in extractors:
        extractor.join()
    output.put(None)
    reducer.join()
    sys.exit(reducer.exitcode)


if __name__ == "__main__":
    main()
