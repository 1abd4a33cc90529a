"""Scans transcripts of agents in two processes, and records each result with what was scanned"""

import hashlib
import json
import lzma
import multiprocessing
import queue
import random
import re
import sqlite3
import time

import torch

SECONDS = 26.0
PATTERNS = [re.compile(p) for p in (r"\bresult-\d+7\b", r"(?:retry|failed) after \d+", r"tool_[a-f]+\(\d+\)")]
WORDS = "the agent calls tool retry failed after step plan answer file read write test passed".split()


def paragraphs(generator):
    for _ in range(600):
        words = generator.choices(WORDS, k=300)
        words[generator.randrange(300)] = f"result-{generator.randrange(10**6)}"
        words[generator.randrange(300)] = f"tool_{generator.choice('abcdef')}({generator.randrange(100)})"
        yield " ".join(words)


class Transcripts:
    """What the store of transcripts gives a process, one after the other"""

    def __init__(self, part):
        self.generator, self.part, self.number = random.Random(part), part, 0
        self.paragraphs = list(paragraphs(self.generator))

    def read(self):
        self.number += 1
        messages = self.generator.choices(self.paragraphs, k=64)
        return {"id": f"{self.part}-{self.number}", "messages": "\n".join(messages)}


class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.letters = torch.nn.Embedding(256, 12)
        self.head = torch.nn.Linear(12, 3)

    @torch.inference_mode()
    def forward(self, text):
        letters = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8).long()
        windows = torch.nn.functional.avg_pool1d(self.letters(letters).T[None], 64)
        return self.head(windows.amax(2)).softmax(1)[0].tolist()


def scan(part, results, stop):
    torch.set_num_threads(1)
    transcripts, scorer, scanned = Transcripts(part), Scorer(), 0
    while not stop.is_set():
        transcript = transcripts.read()
        found = [match.group() for pattern in PATTERNS for match in pattern.finditer(transcript["messages"])]
        scores = scorer(transcript["messages"])
        results.put({"transcript": transcript, "found": found, "scores": scores})
        scanned += 1
    results.cancel_join_thread()
    print(f"process {part}: {scanned} scanned", flush=True)


class Recorder:
    def __init__(self, path):
        self.database = sqlite3.connect(path)
        self.database.execute("CREATE TABLE results (id TEXT, digest TEXT, found TEXT, scores TEXT, transcript BLOB)")
        self.recorded = 0

    def record(self, result):
        content = result["transcript"]["messages"].encode()
        row = (
            result["transcript"]["id"],
            hashlib.sha256(content).hexdigest(),
            json.dumps(result["found"]),
            json.dumps(result["scores"]),
            lzma.compress(content, preset=6),
        )
        self.database.execute("INSERT INTO results VALUES (?, ?, ?, ?, ?)", row)
        self.database.commit()
        self.recorded += 1


def main():
    context = multiprocessing.get_context("fork")
    results, stop = context.Queue(), context.Event()
    processes = [context.Process(target=scan, args=(part, results, stop)) for part in range(2)]
    for process in processes:
        process.start()
    recorder, started = Recorder("scan.db"), time.monotonic()
    while time.monotonic() - started < SECONDS:
        try:
            recorder.record(results.get(timeout=1.0))
        except queue.Empty:
            continue
        if recorder.recorded % 50 == 0:
            print(f"{recorder.recorded} results recorded", flush=True)
    stop.set()
    for process in processes:
        process.join(timeout=10)
        process.terminate()
        process.join()


if __name__ == "__main__":
    main()
