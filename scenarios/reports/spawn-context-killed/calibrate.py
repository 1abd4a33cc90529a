"""Percentile ranks of each allele's predictor over a large random set of peptides."""

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np

PEPTIDES = 850_000
LENGTH = 15
WORKER_CONTEXT = {}


def load_context():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 20, (PEPTIDES, LENGTH), np.uint8)
    letters = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", np.uint8)[codes]
    peptides = [bytes(row).decode() for row in letters]
    vectors = rng.standard_normal((PEPTIDES, 48), np.float32)
    return {"peptides": peptides, "vectors": vectors, "weights": rng.standard_normal((40, 48, 96), np.float32)}


def initialize_worker(context):
    WORKER_CONTEXT.update(context)


def calibrate(model):
    weights, vectors = WORKER_CONTEXT["weights"][model], WORKER_CONTEXT["vectors"]
    scores = np.concatenate([np.tanh(part @ weights / 9).max(1) for part in np.array_split(vectors, 2)])
    best = WORKER_CONTEXT["peptides"][int(scores.argmax())]
    return best, np.percentile(scores, np.linspace(0, 100, 1000))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-jobs", type=int, default=0)
    parser.add_argument("--models", type=int, default=10)
    args = parser.parse_args()
    context = load_context()
    print(f"{len(context['peptides'])} peptides, {args.num_jobs} jobs", flush=True)
    if args.num_jobs == 0:
        initialize_worker(context)
        found = map(calibrate, range(args.models))
        pool = None
    else:
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(args.num_jobs, spawn, initialize_worker, (context,))
        found = pool.map(calibrate, range(args.models))
    for model, (best, percentiles) in enumerate(found):
        print(f"model {model}: best {best}, median {percentiles[500]:.3f}", flush=True)
    if pool is not None:
        pool.shutdown()


if __name__ == "__main__":
    main()
