"""Exports the users of each region: a pool of threads renders them, and the parts are summed up when all are there."""

import resource
import zlib
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

REGIONS = 9
USERS = 30


def process_user(region, user):
    """The rendered history of a user, ten megabytes of it."""
    history = np.random.default_rng(region * 1000 + user).integers(0, 60, 10_000_000, np.uint8)
    packed = zlib.compress(history[:1_200_000], 6)
    return bytearray(history), len(packed)


def export(region):
    with ThreadPoolExecutor(max_workers=2) as executor:
        futures = [executor.submit(process_user, region, user) for user in range(USERS)]
        size = packed = 0
        for future in as_completed(futures):
            history, length = future.result()
            size, packed = size + len(history), packed + length
    return size, packed


def main():
    for region in range(REGIONS):
        size, packed = export(region)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"region {region}: {size} bytes, {packed} packed, peak {peak:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
