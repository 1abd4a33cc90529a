"""Healthy: a pool for every call, each closed by its `with`; forty generations, three processes at a time."""

import multiprocessing


def square(n):
    return sum((n + k) ** 2 for k in range(20_000))


if __name__ == "__main__":
    for turn in range(40):
        with multiprocessing.Pool(3) as pool:
            print(turn, sum(pool.map(square, range(60))), flush=True)
