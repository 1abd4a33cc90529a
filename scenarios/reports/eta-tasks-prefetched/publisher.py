"""Scores the products for customers, and plans a reminder for each of them"""

import json
import signal
import socket
import sys
import time
import uuid

import numpy as np

SECONDS, ROUND_S, REMINDERS, RECEIPTS = 90.0, 0.05, 40, 1
PRODUCTS, FACTORS, OFFERS, DELAY_S = 2000, 48, 120, 3600.0


def task(name, arguments, eta=None):
    body = {"id": str(uuid.uuid4()), "task": name, "args": arguments, "eta": eta, "retries": 0}
    return b"publish " + json.dumps(body).encode() + b"\n"


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    generator = np.random.default_rng(0)
    products = generator.standard_normal((PRODUCTS, FACTORS))
    started, customer = time.monotonic(), 0
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        while time.monotonic() - started < SECONDS:
            until = time.monotonic() + ROUND_S
            customers = generator.standard_normal((REMINDERS, FACTORS))
            while True:
                scores = customers @ products.T
                customers += 1e-3 * (np.tanh(scores) @ products) / PRODUCTS
                if time.monotonic() > until:
                    break
            messages = []
            for one in range(REMINDERS):
                best = np.argsort(scores[one])[-OFFERS:]
                offers = [[int(product) + 1000, round(float(scores[one, product]), 3)] for product in best]
                messages.append(task("shop.remind", [customer, offers], time.time() + DELAY_S))
                customer += 1
            messages.extend(task("shop.receipt", [customer, 400]) for _ in range(RECEIPTS))
            connection.sendall(b"".join(messages))
            if customer % (REMINDERS * 50) == 0:
                print(f"publisher: {customer} reminders", flush=True)


if __name__ == "__main__":
    main()
