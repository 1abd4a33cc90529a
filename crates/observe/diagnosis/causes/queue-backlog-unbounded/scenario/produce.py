"""Items of 256 KiB are put ten times as fast as they are taken: into a multiprocessing.Queue (queue), a queue.Queue of
threads (threads), or as results of Pool.imap (imap); `bounded` makes the producer wait, `burst` puts a few at once."""

import multiprocessing
import queue
import sys
import threading
import time

ITEM = 1 << 18


def consume(items, pause):
    while items.get() is not None:
        time.sleep(pause)


def produce(items, number, pause):
    for n in range(number):
        items.put(bytes([n % 256]) * ITEM)
        time.sleep(pause)
    items.put(None)


def item(number):
    time.sleep(0.01)
    return bytes([number % 256]) * ITEM


def limited(number, room):
    for n in range(number):
        room.acquire()
        yield n


if __name__ == "__main__":
    kind, how = sys.argv[1:]
    bound = 16 if how == "bounded" else 0
    number, pause = (300, 0.001) if how == "burst" else (1500, 0.01)
    if kind == "imap":
        room = threading.Semaphore(16)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results = pool.imap(item, limited(120, room) if bound else range(2000))
            for _ in range(120):
                next(results)
                room.release()
                time.sleep(0.1)
    elif kind == "threads":
        items = queue.Queue(maxsize=bound)
        consumer = threading.Thread(target=consume, args=(items, 0.1), daemon=True)
        consumer.start()
        produce(items, 150 if bound else number, pause)
    else:
        items = multiprocessing.Queue(maxsize=bound)
        slow = 0.02 if how == "burst" else 0.1
        consumer = multiprocessing.get_context("fork").Process(target=consume, args=(items, slow), daemon=True)
        consumer.start()
        produce(items, 150 if bound else number, pause)
        if how == "burst":
            consumer.join()
            time.sleep(6)
        items.cancel_join_thread()
    print("done")
