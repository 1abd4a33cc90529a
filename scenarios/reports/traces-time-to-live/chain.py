"""A chain that answers questions from documents, for three users at once, under the tracer"""

import concurrent.futures
import random
import threading
import time

import torch

from traces import Span, TraceManager

torch.set_num_threads(1)
RUN_S, USERS = 33.0, 3
DOCUMENTS, LENGTH, CONTEXT = 300, 24_000, 7
GENERATE_S = 0.06


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(256, 64)
        self.recurrent = torch.nn.GRU(64, 128, batch_first=True)
        self.head = torch.nn.Linear(128, 256)

    @torch.inference_mode()
    def generate(self, prompt, seconds):
        until = time.monotonic() + seconds
        tokens = torch.tensor(list(prompt[-300:].encode("ascii", "replace")))[None]
        while True:
            hidden, _ = self.recurrent(self.embedding(tokens))
            if time.monotonic() > until:
                return bytes((self.head(hidden)[0].argmax(1) % 26 + 97).tolist()).decode()


class Chain:
    def __init__(self):
        torch.manual_seed(0)
        self.model, self.manager = Model().eval(), TraceManager()
        self.turn = threading.Lock()
        draw = random.Random(1)
        self.documents = [draw.randbytes(LENGTH // 2).hex() for _ in range(DOCUMENTS)]

    def answer(self, question, draw):
        request_id = self.manager.start_trace("qa-chain")
        found = draw.sample(range(DOCUMENTS), CONTEXT)
        self.manager.add_span(request_id, Span("retriever", question, found))
        prompt = "\n".join([self.documents[number] for number in found] + [question])
        with self.turn:
            text = self.model.generate(prompt, GENERATE_S)
        self.manager.add_span(request_id, Span("llm", prompt, text))
        lines = [f"{number}: {line.upper()}" for number, line in enumerate(prompt.split("\n"))]
        self.manager.add_span(request_id, Span("parser", text, {"sources": lines, "answer": text[:80]}))
        self.manager.add_span(request_id, Span("citations", found, "\n".join(lines) * 3))
        self.manager.end_trace(request_id)
        return text[:80]


def user(number, chain, end):
    draw, answers = random.Random(number), 0
    while time.monotonic() < end:
        chain.answer(f"question {answers} of user {number}: {draw.randbytes(20).hex()}", draw)
        answers += 1
        if number == 0 and answers % 40 == 0:
            trace = chain.manager.get_last_trace()
            kept = len(chain.manager.buffer)
            print(f"{answers} answers, the last took {trace.duration:.2f} s, {kept} traces", flush=True)
    return answers


def main():
    chain, end = Chain(), time.monotonic() + RUN_S
    with concurrent.futures.ThreadPoolExecutor(USERS) as executor:
        answers = sum(executor.map(user, range(USERS), [chain] * USERS, [end] * USERS))
    print(f"{answers} questions answered", flush=True)


if __name__ == "__main__":
    main()
