"""Tunes a small language model in two stages: on examples first, then with rewards, whose rollouts share an object store"""

import multiprocessing
import os
import socket
import tempfile
import time

import numpy as np
import torch

torch.set_num_threads(1)
EXAMPLES, LENGTH, VOCABULARY = 60_000, 512, 2_000
WARM_UP_S = 25
BATCH = 8


def tokenize():
    generator = np.random.default_rng(5)
    blocks = [generator.integers(0, VOCABULARY, (2_000, LENGTH)).astype(np.int32) for _ in range(EXAMPLES // 2_000)]
    return np.concatenate(blocks)


class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, 64)
        self.recurrent = torch.nn.GRU(64, 128, batch_first=True)
        self.head = torch.nn.Linear(128, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.recurrent(self.embedding(tokens))[0])


def warm_up(model, examples):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = np.random.default_rng(6)
    end, step = time.monotonic() + WARM_UP_S, 0
    while time.monotonic() < end:
        tokens = torch.from_numpy(examples[generator.integers(0, EXAMPLES, BATCH)][:, :128].astype(np.int64))
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"warm-up step {step}: loss {loss.item():.3f}", flush=True)


class Node:
    """The session of the cluster on this machine: its folder, its sockets and its object store"""

    def __init__(self):
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        self.session = os.path.join(tempfile.gettempdir(), "ray", f"session_{stamp}_592207_{os.getpid()}")
        self.sockets = os.path.join(self.session, "sockets")
        os.makedirs(self.sockets)

    def start_store(self):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(self.sockets, "plasma_store"))
        listener.listen()
        process = multiprocessing.Process(target=serve_objects, args=(listener,), daemon=True)
        process.start()
        return process


def serve_objects(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            while connection.recv(1 << 16):
                connection.sendall(b"ok")


def roll_out(model, node, examples):
    store = node.start_store()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.path.join(node.sockets, "plasma_store"))
        for start in range(0, 256, BATCH):
            with torch.inference_mode():
                scores = model(torch.from_numpy(examples[start : start + BATCH, :64].astype(np.int64)))
            connection.sendall(scores.argmax(2).numpy().tobytes()[:4096])
            connection.recv(2)
    store.terminate()


def main():
    examples = tokenize()
    print(f"{len(examples)} examples, {examples.nbytes >> 20} MiB", flush=True)
    torch.manual_seed(0)
    model = LanguageModel()
    warm_up(model, examples)
    roll_out(model, Node(), examples)


if __name__ == "__main__":
    main()
