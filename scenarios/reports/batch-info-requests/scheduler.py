"""Decodes the running requests in one batch, a token each step, and collects what the model returns besides"""

import selectors
import socket
import struct
import sys
import time

import torch

torch.set_num_threads(1)
MAX_RUNNING, VOCABULARY, WIDTH, LAYERS = 16, 4000, 768, 16
STEP_S = 0.05
REQUEST = struct.Struct("<III")
ANSWER = struct.Struct("<IIf")


class Model(torch.nn.Module):
    """A decoder that returns the hidden states of all layers as customized info"""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)])
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        hidden, states = self.embedding(tokens), []
        for layer in self.layers:
            hidden = hidden + torch.tanh(layer(hidden))
            states.append(hidden)
        return self.head(hidden).argmax(1), {"hidden_states": torch.cat(states, 1)}


class Req:
    def __init__(self, number, token, max_new_tokens):
        self.number, self.max_new_tokens = number, max_new_tokens
        self.output_ids = [token]
        self.customized_info = {}

    def finished(self):
        return len(self.output_ids) > self.max_new_tokens


class Scheduler:
    def __init__(self, connection):
        torch.manual_seed(0)
        self.model = Model().eval()
        self.connection = connection
        self.selector = selectors.DefaultSelector()
        self.selector.register(connection, selectors.EVENT_READ)
        self.waiting, self.running = [], []
        self.received, self.going = b"", True
        self.steps = 0

    def recv_requests(self):
        while self.going and self.selector.select(0 if self.running or self.waiting else None):
            data = self.connection.recv(65536)
            if not data:
                self.going = False
                return
            self.received += data
            while len(self.received) >= REQUEST.size:
                self.waiting.append(Req(*REQUEST.unpack_from(self.received)))
                self.received = self.received[REQUEST.size :]

    def maybe_collect_customized_info(self, number, req, customized_info):
        for name, value in customized_info.items():
            req.customized_info.setdefault(name, []).append(value[number])

    def step(self):
        while self.waiting and len(self.running) < MAX_RUNNING:
            self.running.append(self.waiting.pop(0))
        tokens, until = torch.tensor([req.output_ids[-1] for req in self.running]), time.monotonic() + STEP_S
        while True:
            chosen, info = self.model(tokens)
            if time.monotonic() > until:
                break
        for number, (req, token) in enumerate(zip(self.running, chosen.tolist())):
            req.output_ids.append(token)
            self.maybe_collect_customized_info(number, req, info)
        self.steps += 1
        if self.steps % 100 == 0:
            longest = max(len(req.output_ids) for req in self.running)
            print(f"step {self.steps}: {len(self.running)} running, longest {longest} tokens", flush=True)
        for req in [req for req in self.running if req.finished()]:
            self.running.remove(req)
            self.answer(req)

    def answer(self, req):
        states = req.customized_info["hidden_states"]
        norm = sum(state.norm().item() for state in states) / len(states)
        self.connection.sendall(ANSWER.pack(req.number, len(req.output_ids), norm))

    @torch.inference_mode()
    def event_loop(self):
        while True:
            self.recv_requests()
            if not self.going:
                return
            self.step()


def main():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with open(sys.argv[1], "w") as file:
            print(server.getsockname()[1], file=file)
        connection, _ = server.accept()
    with connection:
        Scheduler(connection).event_loop()


if __name__ == "__main__":
    main()
