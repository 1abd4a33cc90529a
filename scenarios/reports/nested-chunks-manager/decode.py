"""Decoding of utterances by two workers; the chunks of an utterance are shared as a list in a manager's dictionary"""

import multiprocessing
import time

import numpy as np
import torch

SECONDS, IN_FLIGHT, CHUNKS, SAMPLES = 26.0, 6, 12, 8000


def beam_search(chunks, weights, seconds):
    """As many hypotheses as the time for one utterance allows"""
    until, passes = time.monotonic() + seconds, 0
    signal = torch.from_numpy(np.concatenate([np.frombuffer(chunk, dtype=np.float32) for chunk in chunks]))
    frames = signal[: len(signal) // 200 * 200].view(-1, 200)
    scores = frames @ weights
    while time.monotonic() < until:
        scores = torch.log_softmax(torch.tanh(scores), 1)
        passes += 1
    return int(scores.argmax()), passes


def decoder(queue, utterances, results):
    torch.set_num_threads(1)
    weights = torch.randn(200, 64, generator=torch.Generator().manual_seed(0))
    while (name := queue.get()) is not None:
        chunks = utterances[name]
        best, passes = beam_search(chunks[:], weights, 0.08)
        utterances.pop(name)
        del chunks
        results.put((name, best, passes))


def record(generator):
    return [generator.standard_normal(SAMPLES, dtype=np.float32).tobytes() for _ in range(CHUNKS)]


def main():
    with multiprocessing.Manager() as manager:
        utterances = manager.dict()
        queue, results = multiprocessing.Queue(), multiprocessing.Queue()
        workers = [multiprocessing.Process(target=decoder, args=(queue, utterances, results)) for _ in range(2)]
        for worker in workers:
            worker.start()
        generator = np.random.default_rng(0)
        started, number, waiting, decoded = time.monotonic(), 0, 0, 0
        while time.monotonic() - started < SECONDS:
            while waiting < IN_FLIGHT:
                name = f"utterance-{number:05d}"
                chunks = manager.list(record(generator))
                utterances[name] = chunks
                del chunks
                queue.put(name)
                number, waiting = number + 1, waiting + 1
            results.get()
            waiting, decoded = waiting - 1, decoded + 1
            if decoded % 50 == 0:
                print(f"{decoded} decoded, {len(utterances)} in the dictionary", flush=True)
        for _ in workers:
            queue.put(None)
        for _ in range(waiting):
            results.get()
        for worker in workers:
            worker.join()
        print(f"{number} utterances, {len(utterances)} left in the dictionary", flush=True)


if __name__ == "__main__":
    main()
