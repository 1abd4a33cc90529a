"""Answers questions with teams of agents: a researcher, an analyst and a writer"""

import random
import subprocess
import time

import torch

from bus import Event, default_bus

torch.set_num_threads(1)
SECONDS, PASSAGES, WIDTH = 26.0, 1800, 192
WORDS = [f"{stem}{ending}" for stem in ("grid", "wind", "tariff", "load", "solar") for ending in ("", "s", "ing", "ed")]


class Embedder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.EmbeddingBag(4096, WIDTH)
        self.mix = torch.nn.Sequential(torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.GELU(), torch.nn.Linear(2 * WIDTH, WIDTH))

    @torch.inference_mode()
    def forward(self, tokens):
        return torch.nn.functional.normalize(self.mix(self.table(tokens)), dim=1)


class Agent:
    def __init__(self, name, role, embedder, seed):
        self.name, self.role, self.embedder = name, role, embedder
        self.seen = 0
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(0, 4096, (PASSAGES // 3, 24), generator=generator)
        self.knowledge = embedder(self.tokens)
        default_bus.subscribe("tool", self.on_tool)
        default_bus.subscribe("answer", self.on_answer)

    def on_tool(self, event):
        if event.data["team"] == self.name.partition("/")[0]:
            self.seen += 1

    def on_answer(self, event):
        if event.data["team"] == self.name.partition("/")[0]:
            self.seen += event.data["length"]

    def use_tool(self, text):
        done = subprocess.run(["sort", "-u"], input="\n".join(text.split()), capture_output=True, text=True, check=True)
        default_bus.publish(Event("tool", self.name, {"team": self.name.partition("/")[0], "tool": "sort"}))
        return done.stdout.split()

    def work(self, text):
        words = self.use_tool(text)
        query = self.embedder(torch.tensor([[hash(word) % 4096 for word in words]]))
        best = (self.knowledge @ query[0]).topk(3).indices.tolist()
        return f"{text} [{self.role}: passages {best}]"


class Team:
    def __init__(self, number, embedder):
        roles = ("researcher", "analyst", "writer")
        self.number = number
        self.agents = [Agent(f"team{number}/{role}", role, embedder, 3 * number + i) for i, role in enumerate(roles)]

    def answer(self, question):
        text = question
        for agent in self.agents:
            text = agent.work(text)
        default_bus.publish(Event("answer", f"team{self.number}", {"team": f"team{self.number}", "length": len(text)}))
        return text


def main():
    torch.manual_seed(0)
    embedder, source = Embedder(), random.Random(2)
    end, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        question = "why did " + " ".join(source.choices(WORDS, k=40))
        started = time.monotonic()
        text = Team(number, embedder).answer(question)
        number += 1
        # The next question comes when the caller has read the answer
        while time.monotonic() < started + 0.14:
            embedder(torch.randint(0, 4096, (64, 24)))
        if number % 40 == 0:
            print(f"{number} questions, {len(text)} characters in the last answer", flush=True)


if __name__ == "__main__":
    main()
