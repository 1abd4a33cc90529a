"""Tries the words of a list against stored hashes: a producer fills a queue for each consumer, as fast as it reads."""

import hashlib
import itertools
import multiprocessing as mp
import os
import tempfile

THREADS = 2
WORDS = 1_300_000
TRIED = 185  # of each consumer; then the account is locked, and all is over


def write_wordlist(path):
    stems = ["summer", "winter", "admin", "football", "shadow", "letmein", "dragon", "monkey"]
    with open(path, "w") as file:
        for number, stem in zip(range(WORDS), itertools.cycle(stems)):
            file.write(f"{stem}{hashlib.md5(b'%d' % number).hexdigest()}\n")


def produce(path, queues, done):
    """One payload for each word, with a word of its neighbourhood mangled in, round robin."""
    turn = itertools.cycle(queues)
    with open(path) as file:
        for number, line in enumerate(file):
            if done.is_set():
                break
            word = line.strip()
            salted = hashlib.pbkdf2_hmac("sha256", word.encode(), b"ssh", 10).hex()
            next(turn).put_nowait({"host": "10.0.0.7", "user": "root", "password": word, "token": salted})
            if number % 50_000 == 0:
                print(f"{number} words queued", flush=True)
    for queue in queues:
        queue.cancel_join_thread()
    done.wait()


def consume(queue, report):
    """A login takes a while: the server derives a key from each password."""
    for tried in range(TRIED):
        payload = queue.get()
        derived = hashlib.scrypt(payload["password"].encode(), salt=b"server", n=16384, r=8, p=1, maxmem=1 << 26)
        if tried % 50 == 0:
            report.put((mp.current_process().name, tried, derived.hex()[:6]))
    report.put(None)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "wordlist.txt")
        write_wordlist(path)
        queues, report, done = [mp.Queue() for _ in range(THREADS)], mp.SimpleQueue(), mp.Event()
        workers = [mp.Process(target=consume, args=(queue, report), name=f"consumer-{n}") for n, queue in enumerate(queues)]
        producer = mp.Process(target=produce, args=(path, queues, done), name="producer")
        for process in (producer, *workers):
            process.start()
        running = THREADS
        while running:
            progress = report.get()
            if progress is None:
                running -= 1
            else:
                print(*progress, flush=True)
        done.set()
        for process in (producer, *workers):
            process.join()


if __name__ == "__main__":
    main()
