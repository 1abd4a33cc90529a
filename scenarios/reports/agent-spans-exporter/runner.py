"""A runner: plays tasks with the policy under a tracer, whose exporter sends finished traces to the store"""

import argparse
import json
import socket
import time

import torch

torch.set_num_threads(1)
RUN_S = 34
TURNS, VOCABULARY, COMPLETION = 6, 500, 128
CONTEXT = 9000
NAMES = [f"w{token:03d}" for token in range(VOCABULARY)]


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, 64)
        self.recurrent = torch.nn.GRU(64, 128, batch_first=True)
        self.head = torch.nn.Linear(128, VOCABULARY)

    @torch.inference_mode()
    def complete(self, tokens):
        hidden, _ = self.recurrent(self.embedding(tokens[None, -COMPLETION:]))
        scores = self.head(hidden)[0].log_softmax(1)
        best, chosen = scores.max(1)
        return chosen, best


class Span:
    def __init__(self, trace, name, parent, headers, attributes, reward):
        self.trace, self.name, self.parent = trace, name, parent
        self.headers, self.attributes, self.reward = headers, attributes, reward
        self.ended = time.time()

    def to_json(self):
        return {"name": self.name, "headers": self.headers, "reward": self.reward, "attributes": self.attributes}


class SpanExporter:
    """Holds spans until the root of their trace has ended, and then sends the whole trace"""

    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.answers = self.connection.makefile("rb")
        self.buffer = []

    def export(self, span):
        self.buffer.append(span)
        if span.parent is None:
            self.maybe_flush(span.trace)

    def maybe_flush(self, trace):
        spans = [span for span in self.buffer if span.trace == trace]
        headers = {}
        for span in spans:
            headers.update(span.headers)
        if "x-rollout-id" not in headers or "x-attempt-id" not in headers:
            return
        for span in spans:
            span.headers = headers
        data = json.dumps([span.to_json() for span in spans]).encode()
        self.connection.sendall(b"%d\n" % len(data) + data)
        self.answers.readline()
        self.buffer = [span for span in self.buffer if span.trace != trace]

    def close(self):
        self.connection.close()
        self.answers.close()


def words(tokens):
    return " ".join([NAMES[token] for token in tokens])


def rollout(number, policy, exporter, generator):
    task = torch.randint(0, VOCABULARY, (CONTEXT,), generator=generator)
    headers = {"x-rollout-id": f"ro-{number}", "x-attempt-id": "at-1"} if number % 12 == 0 else {}
    total = 0.0
    for turn in range(TURNS):
        chosen, scores = policy.complete(task)
        reward = float((chosen % 7 == 0).float().mean())
        attributes = {
            "gen_ai.prompt": words(task.tolist()),
            "gen_ai.completion": words(chosen.tolist()),
            "gen_ai.logprobs": tuple(scores.tolist()),
        }
        exporter.export(Span(number, f"chat.completion.{turn}", "root", headers, attributes, reward))
        task = torch.cat([task[COMPLETION:], chosen])
        total += reward
    exporter.export(Span(number, "agent.run", None, {}, {"turns": TURNS}, 0.0))
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=int, required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    policy, exporter = Policy(), SpanExporter(options.store)
    generator = torch.Generator().manual_seed(1)
    end, number, total = time.monotonic() + RUN_S, 0, 0.0
    while time.monotonic() < end:
        total += rollout(number, policy, exporter, generator)
        number += 1
        if number % 100 == 0:
            print(f"rollout {number}: mean reward {total / number:.3f}", flush=True)
    exporter.close()


if __name__ == "__main__":
    main()
