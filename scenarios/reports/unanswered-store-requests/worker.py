"""A prefill worker: takes prompts from its queue, computes their keys and values, and has the cache store them"""

import sys
import time

import torch

from mq import MessageQueueClient, WorkerAdapter

torch.set_num_threads(1)
VOCABULARY, TOKENS = 120_000, 16_000
RUN_S, PREFILL_S = 34.0, 0.04


class Prefill(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, 32)
        self.recurrent = torch.nn.GRU(32, 96, batch_first=True)

    @torch.inference_mode()
    def run(self, tokens, seconds):
        until, start, norm = time.monotonic() + seconds, 0, 0.0
        while time.monotonic() < until:
            part = torch.tensor(tokens[start : start + 256])[None]
            hidden, _ = self.recurrent(self.embedding(part))
            norm += hidden.norm().item()
            start = (start + 256) % (TOKENS - 256)
        return norm


def prompts():
    generator = torch.Generator().manual_seed(3)
    end = time.monotonic() + RUN_S
    while time.monotonic() < end:
        yield torch.randint(1000, VOCABULARY, (TOKENS,), generator=generator).tolist()


def main():
    torch.manual_seed(0)
    model = Prefill()
    client = MessageQueueClient(int(sys.argv[1]))
    adapter = WorkerAdapter(client, instance=4711)
    adapter.ping()
    finished = 0
    for number, tokens in enumerate(prompts(), 1):
        request_id = f"cmpl-{number:06d}"
        adapter.retrieve(request_id, tokens)
        norm = model.run(tokens, PREFILL_S)
        adapter.store(request_id, tokens)
        finished += len(adapter.get_finished())
        if number % 50 == 0:
            print(f"{number} prompts, norm {norm:.1f}, transfers of {finished} finished", flush=True)
    client.close()


if __name__ == "__main__":
    main()
