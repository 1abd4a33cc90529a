"""Answers questions of a list with passages from a retriever, each step of it traced"""

import json
import os
import subprocess
import sys
import time
import zlib

import torch
from torch import nn

from langsmith_client import client, traceable

torch.set_num_threads(1)
QUESTIONS, QUESTION_S = 270, 0.1


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(4096, 64)
        self.embedding = nn.Embedding(128, 64)
        self.recurrent = nn.GRUCell(64, 192)
        self.start, self.head = nn.Linear(64, 192), nn.Linear(192, 128)

    def embed(self, text):
        numbers = [zlib.crc32(word.encode()) % 4096 for word in text[:2000].split()]
        return self.words(torch.tensor([numbers]))

    @torch.inference_mode()
    def rank(self, question, passages):
        return torch.cat([self.embed(passage) for passage in passages]) @ self.embed(question)[0]

    @torch.inference_mode()
    def write(self, passage, until):
        hidden, token, written = torch.tanh(self.start(self.embed(passage))), torch.zeros(1, dtype=torch.long), []
        while not written or time.monotonic() < until:
            hidden = self.recurrent(self.embedding(token), hidden)
            token = self.head(hidden).argmax(1)
            written.append(chr(97 + int(token) % 26))
        return "".join(written)


class Retriever:
    def __init__(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "retriever.py")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, script], **pipes)

    def search(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Context:
    """What is known to the steps of one question"""

    def __init__(self, question, passages):
        self.question, self.passages = question, passages
        self.until = time.monotonic() + QUESTION_S


def answer(question, writer, retriever):
    context = Context(question, [])

    def retrieve(limit: int) -> list:
        context.passages = retriever.search(context.question)[:limit]
        scores = writer.rank(context.question, context.passages)
        return scores.argsort(descending=True).tolist()

    def write(best: int) -> str:
        return writer.write(context.passages[best], context.until)

    order = traceable(retrieve, run_type="retriever")(limit=40)
    return traceable(write, run_type="llm")(best=order[0])


def main():
    torch.manual_seed(0)
    writer, retriever, letters = Writer().eval(), Retriever(), 0
    for number in range(QUESTIONS):
        letters += len(answer(f"What does part {number} of the manual say?", writer, retriever))
        if (number + 1) % 45 == 0:
            print(f"{number + 1} questions, {letters} letters, {client.sent} runs sent", flush=True)
    retriever.close()
    client.close()


if __name__ == "__main__":
    main()
