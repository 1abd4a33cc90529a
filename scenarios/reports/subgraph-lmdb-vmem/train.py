"""Inductive link prediction: extract the enclosing subgraphs of all links into a store, and fit a scorer on them"""

import argparse
import multiprocessing
import os
import pickle
import time

import numpy as np
from store import Environment

NODES, DEGREE, LINKS_IN_TABLE = 6000, 6, 420_000
MARGIN = 1.5
BUDGET_S = 16
GRAPH = {}


def load_graph(seed=0):
    rng = np.random.default_rng(seed)
    heads = np.repeat(np.arange(NODES), DEGREE)
    tails = rng.integers(0, NODES, NODES * DEGREE)
    neighbours = [[] for _ in range(NODES)]
    for head, tail in zip(heads.tolist(), tails.tolist()):
        neighbours[head].append(tail)
        neighbours[tail].append(head)
    return neighbours, np.stack([heads, tails], 1)


def initialize_worker(neighbours, hops):
    GRAPH["neighbours"], GRAPH["hops"] = neighbours, hops


def around(node, hops):
    seen, border = {node}, [node]
    for _ in range(hops):
        border = [other for one in border for other in GRAPH["neighbours"][one] if other not in seen]
        seen.update(border)
    return seen


def subgraph_of(link):
    """The nodes within some hops of either end, labelled by their distances to the ends"""
    head, tail = link
    nodes = sorted(around(head, GRAPH["hops"] + 1) | around(tail, GRAPH["hops"] + 1))
    position = {node: number for number, node in enumerate(nodes)}
    edges = [(position[a], position[b]) for a in nodes for b in GRAPH["neighbours"][a] if b in position]
    sizes = np.bincount(np.array(edges, dtype=np.int32)[:, 0], minlength=len(nodes))
    return pickle.dumps((link, np.array(nodes, dtype=np.int32), sizes.astype(np.int32)))


def average_size(links, count=40):
    return sum(len(subgraph_of(tuple(link))) for link in links[:count].tolist()) / count


def generate(neighbours, links, hops, path):
    """Estimates the size of the store from a sample, opens it, and fills it from a pool"""
    initialize_worker(neighbours, hops)
    map_size = int(average_size(links) * LINKS_IN_TABLE * MARGIN) // 4096 * 4096
    print(f"{hops} hops: map size {map_size / 1e9:.2f} GB", flush=True)
    environment = Environment(path, map_size)
    until, written = time.monotonic() + BUDGET_S, 0
    with multiprocessing.Pool(2, initialize_worker, (neighbours, hops)) as pool:
        for number, value in enumerate(pool.imap(subgraph_of, map(tuple, links.tolist()), chunksize=16)):
            environment.put(number, value)
            written += 1
            if time.monotonic() > until:
                break
    print(f"{hops} hops: {written} subgraphs, {environment.end / 1e6:.1f} MB", flush=True)
    return environment, written


def fit(environment, count, epochs=2):
    weights = np.zeros(8)
    for _ in range(epochs):
        for number in range(count):
            link, nodes, sizes = pickle.loads(environment.get(number))
            features = np.histogram(sizes, bins=8, range=(0, 32))[0] / len(nodes)
            score = 1 / (1 + np.exp(-weights @ features))
            weights += 0.05 * ((link[0] % 2) - score) * features
    return weights


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--hops", type=int, nargs="+", default=[1])
    arguments = parser.parse_args()
    neighbours, links = load_graph()
    np.random.default_rng(1).shuffle(links)
    folder = f"{arguments.dataset}-{os.getpid()}"
    os.mkdir(folder)
    for hops in arguments.hops:
        path = os.path.join(folder, f"subgraphs_neg_1_hop_{hops}")
        environment, count = generate(neighbours, links, hops, path)
        print(f"{hops} hops: weights {np.round(fit(environment, min(count, 3000)), 3)}", flush=True)


if __name__ == "__main__":
    main()
