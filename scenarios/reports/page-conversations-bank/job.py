"""Reads a book page by page: each page is a conversation of its own with the model"""

import hashlib
import random
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import torch
from torch import nn

from bank import SessionBank

torch.set_num_threads(1)
SECONDS, IN_FLIGHT, BUDGET = 32.0, 4, 280 << 20
VOCABULARY, WIDTH, LAYERS = 2000, 128, 4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.recurrent = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.projections = nn.ModuleList(nn.Linear(WIDTH, 2 * WIDTH) for _ in range(LAYERS))

    @torch.inference_mode()
    def prefill(self, tokens):
        hidden, state = self.recurrent(self.embedding(torch.tensor(tokens)[None]))
        hidden, caches = hidden[0], {"state": state}
        for number, projection in enumerate(self.projections):
            keys, values = projection(hidden).chunk(2, dim=1)
            caches[f"keys{number}"], caches[f"values{number}"] = keys.clone(), values.clone()
            scores = (hidden[-1] @ keys.T / WIDTH**0.5).softmax(0)
            hidden = hidden + torch.tanh(values + scores @ values)
        return int((self.embedding.weight @ hidden[-1]).argmax()), caches


class Server:
    def __init__(self):
        self.model, self.bank = Model().eval(), SessionBank(BUDGET)
        self.engine = ThreadPoolExecutor(1, thread_name_prefix="engine")

    def _generate(self, tokens):
        key = hashlib.sha1(repr(tokens).encode()).hexdigest()
        if (state := self.bank.get(key)) is None:
            token, state = self.model.prefill(tokens)
            self.bank.put(key, state)
            return token
        return int(state["state"].argmax())

    def complete(self, tokens):
        return self.engine.submit(self._generate, tokens).result()


def page(server, number):
    source = random.Random(number)
    digest, tokens = b"", [7] * 200
    for _ in range(source.randrange(1000, 2000)):
        digest = hashlib.sha256(digest + b"%d" % number).digest()
        tokens.append(int.from_bytes(digest[:4], "big") % VOCABULARY)
    return server.complete(tokens)


def main():
    torch.manual_seed(0)
    server = Server()
    started, number, waiting, said = time.monotonic(), 0, set(), 0
    with ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="request") as requests:
        while time.monotonic() - started < SECONDS:
            # Pages come as the reader turns them, and no more than four are on their way
            while len(waiting) < IN_FLIGHT and number < 5 * (time.monotonic() - started):
                waiting.add(requests.submit(page, server, number))
                number += 1
            if not waiting:
                server.model.prefill(list(range(300)))
                continue
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            said += sum(future.result() is not None for future in done)
            if said % 20 == 0:
                print(f"{said} pages, bank of {server.bank.bytes >> 20} MiB, {server.bank.evictions} evicted", flush=True)
    server.engine.shutdown()


if __name__ == "__main__":
    main()
