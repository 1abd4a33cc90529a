"""The scheduler: runs a step for all running requests, with keys and values in a pool"""

import torch

WIDTH, SLOTS, TOKENS, VOCABULARY = 128, 256, 640, 2000


class Scheduler:
    def __init__(self, requests, detokenizer):
        self.requests, self.detokenizer = requests, detokenizer
        generator = torch.Generator().manual_seed(0)
        self.embedding = torch.randn(VOCABULARY, WIDTH, generator=generator) * 0.3
        self.mixer = torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH**0.5
        self.pool = torch.zeros(SLOTS, TOKENS, WIDTH)
        self.free, self.running = list(range(SLOTS)), {}

    def receive(self):
        while self.requests.poll(0 if self.running else None):
            request = self.requests.recv()
            if request is None:
                return False
            rid, prompt, output = request
            slot = self.free.pop()
            self.pool[slot, : len(prompt)] = self.embedding[torch.tensor(prompt)]
            self.running[rid] = [slot, len(prompt), prompt[-1], output, True]
        return True

    @torch.inference_mode()
    def step(self):
        batch = []
        for rid, state in list(self.running.items()):
            slot, length, token, left, first = state
            past = self.pool[slot, :length]
            query = torch.tanh(self.embedding[token] @ self.mixer)
            value = (past @ query / WIDTH**0.5).softmax(0) @ past + query
            self.pool[slot, length] = value
            token = int((self.embedding @ value).argmax())
            finished = left == 1 or length + 2 > TOKENS
            batch.append((rid, first, token, finished))
            self.running[rid] = [slot, length + 1, token, left - 1, False]
            if finished:
                del self.running[rid]
                self.free.append(slot)
        self.detokenizer.send(batch)


def run_scheduler_process(requests, detokenizer):
    torch.set_num_threads(1)
    scheduler = Scheduler(requests, detokenizer)
    try:
        while scheduler.receive():
            if scheduler.running:
                scheduler.step()
    except (BrokenPipeError, EOFError):
        pass
