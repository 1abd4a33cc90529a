"""Healthy: a Manager's dict that several processes read and write, of bounded size; its server is no trainer."""

import multiprocessing
import zlib


def work(cache, number):
    for step in range(6000):
        key = (step * 13 + number) % 64
        cache[key] = zlib.crc32(bytes([key]) * 1000)


if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        cache = manager.dict()
        processes = [multiprocessing.Process(target=work, args=(cache, n)) for n in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        print(len(cache))
