"""A scheduler of generators as tasks, in a service whose ranking requests fail now and then."""

import threading

import numpy as np

REQUESTS = 260


class RankingTimeout(Exception):
    pass


class AsyncTask:
    def __init__(self, generator, creator=None):
        self._generator = generator
        self._frame = generator.gi_frame
        self._error = None
        self._value = None
        self.failed = []
        self.creator = creator

    def run(self):
        sent = None
        try:
            while True:
                waits_for = self._generator.send(sent)
                sent = waits_for.run() if isinstance(waits_for, AsyncTask) else waits_for()
        except StopIteration as stop:
            self._value, self._frame = stop.value, None
        except Exception as error:
            self._error = error
            if self.creator is not None:
                self.creator.failed.append(self)
            raise
        return self._value

    def failures(self):
        return sum(isinstance(task._error, RankingTimeout) for task in self.failed)


def embeddings(number):
    rng = np.random.default_rng(number)
    answers = rng.standard_normal((6000, 96), np.float32)
    question = rng.standard_normal(96, np.float32)
    yield lambda: None
    return answers, question


def rank(number, root):
    answers, question = yield AsyncTask(embeddings(number), root)
    normed = answers / np.linalg.norm(answers, axis=1, keepdims=True)
    scores = yield lambda: normed @ question
    if number % 2:
        raise RankingTimeout(f"request {number} took too long")
    best = np.argsort(scores)[-10:]
    yield lambda: None
    return best.tolist()


def service():
    yield lambda: None


def main():
    root = AsyncTask(service())
    shown, pause = 0, threading.Event()
    for number in range(REQUESTS):
        try:
            shown += len(AsyncTask(rank(number, root), root).run())
        except RankingTimeout:
            shown += 1
        if number % 20 == 0:
            print(f"request {number}: {shown} answers shown, {root.failures()} requests failed", flush=True)
        pause.wait(0.08)
    root.run()


if __name__ == "__main__":
    main()
