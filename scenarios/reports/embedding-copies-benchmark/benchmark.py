"""The time of inference with embedding tables, for one copy of them and for more and more copies that run at once"""

import argparse
import sys
import time

import torch
import torch.multiprocessing as mp
from tables import QuantizedTables, generate_requests


def run_copy(connection, threads):
    """A copy: gets its tables and requests, and then measures whenever it is asked to"""
    torch.set_num_threads(threads)
    tables, requests = connection.recv()
    connection.send("ready")
    while (seconds := connection.recv()) is not None:
        started, done = time.perf_counter(), 0
        while time.perf_counter() < started + seconds:
            tables(*requests[done % len(requests)])
            done += 1
        connection.send((time.perf_counter() - started) / done)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-embeddings", type=int, default=20_000)
    parser.add_argument("--embedding-dim", type=int, default=96)
    parser.add_argument("--num-tables", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=162)
    parser.add_argument("--bag-size", type=int, default=2)
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--copies", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=4.5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    copies, given = [], []
    for number in range(arguments.copies):
        tables = QuantizedTables(arguments.num_embeddings, arguments.embedding_dim, arguments.num_tables, number)
        requests = generate_requests(
            arguments.requests,
            arguments.batch_size,
            arguments.bag_size,
            arguments.num_embeddings,
            arguments.num_tables,
            number,
        )
        here, there = mp.Pipe()
        process = mp.Process(target=run_copy, args=(there, 1), name=f"copy-{number}", daemon=True)
        process.start()
        there.close()
        here.send((tables, requests))
        copies.append(here)
        given.append((tables, requests))
        if here.recv() != "ready":
            return 1
        for copy in copies:
            copy.send(arguments.seconds)
        times = sorted(copy.recv() for copy in copies)
        print(f"{len(copies)} copies: {1e6 * times[0]:.0f} to {1e6 * times[-1]:.0f} us for a request", flush=True)
    for copy in copies:
        copy.send(None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
