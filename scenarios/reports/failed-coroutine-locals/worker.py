"""A worker that scores merchants by the history of their orders"""

import asyncio
import gc
import json
import logging
import socket
import sys
import time

import torch

from actors import EventLoopThread, WorkerThread

torch.set_num_threads(1)
PORT = int(sys.argv[1])
PAGES, ROWS, WIDTH = 7, 800, 740
PAGE_S = 0.11
RATES = {"EUR": 1.08}
THREADS = 2


class Risk(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bands = torch.nn.Parameter(torch.linspace(0.01, 3.0, WIDTH))
        self.layers = torch.nn.Sequential(torch.nn.Linear(WIDTH, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))

    def features(self, rows):
        return torch.cos(rows[:, :1] * self.bands) + rows[:, 1:] * 0.01

    def score(self, features, seconds):
        until, score = time.monotonic() + seconds, 0.0
        while time.monotonic() < until:
            score = self.layers(features).mean().item()
        return score


risk = Risk().requires_grad_(False)


async def read_page(reader, writer, merchant, number):
    writer.write(f"page {merchant} {number}\n".encode())
    page = json.loads(await reader.readline())
    return page["currency"], torch.tensor(page["rows"], dtype=torch.float32)


def in_dollars(score, currency):
    return score * RATES[currency]


async def score_merchant(merchant):
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT, limit=2**20)
    history = torch.empty(PAGES, ROWS, WIDTH)
    scores = torch.zeros(PAGES)
    try:
        for number in range(PAGES):
            currency, rows = await read_page(reader, writer, merchant, number)
            history[number] = risk.features(rows)
            scores[number] = risk.score(history[number], PAGE_S)
    finally:
        writer.close()
    trend = history.mean(1).std(0).mean().item()
    return in_dollars(scores.mean().item() * trend, currency)


def main():
    logging.basicConfig(level=logging.INFO, format="[%(threadName)s] %(message)s")
    events = EventLoopThread()
    events.start()
    gc.collect()
    threads = [WorkerThread(number, PORT, {"score_merchant": score_merchant}, events) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events.stop()
    with socket.create_connection(("127.0.0.1", PORT)) as connection:
        connection.sendall(b"quit\n")


if __name__ == "__main__":
    main()
