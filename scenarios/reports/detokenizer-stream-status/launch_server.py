"""The front end: sends requests to the scheduler and hands out the text that comes from the detokenizer"""

import multiprocessing
import random
import sys
import time
import uuid
from multiprocessing.connection import wait

from detokenizer_manager import run_detokenizer_process

SECONDS, MOST = 60.0, 200


class TokenizerManager:
    def __init__(self, scheduler, texts):
        self.scheduler, self.texts = scheduler, texts
        self.states, self.finished, self.source = {}, 0, random.Random(4)

    def submit(self):
        rid = uuid.UUID(int=self.source.getrandbits(128)).hex
        self.states[rid] = []
        prompt = [self.source.randrange(2000) for _ in range(self.source.randrange(40, 200))]
        self.scheduler.send((rid, prompt, self.source.randrange(80, 400)))

    def handle(self):
        for rid, text, finished in self.texts.recv():
            self.states[rid].append(text)
            if finished:
                del self.states[rid]
                self.finished += 1


def scheduler_process(requests, detokenizer):
    from scheduler import run_scheduler_process  # only the scheduler needs torch

    run_scheduler_process(requests, detokenizer)


def main():
    context = multiprocessing.get_context("spawn")
    requests_read, requests_write = context.Pipe(duplex=False)
    tokens_read, tokens_write = context.Pipe(duplex=False)
    texts_read, texts_write = context.Pipe(duplex=False)
    scheduler = context.Process(target=scheduler_process, args=(requests_read, tokens_write), name="scheduler")
    detokenizer = context.Process(target=run_detokenizer_process, args=(tokens_read, texts_write), name="detokenizer")
    scheduler.start()
    detokenizer.start()
    for end in (requests_read, tokens_read, tokens_write, texts_write):
        end.close()
    manager, started, said = TokenizerManager(requests_write, texts_read), time.monotonic(), 0
    while (now := time.monotonic() - started) < SECONDS:
        # More clients come as the day goes on
        while len(manager.states) < min(MOST, 8 + 4.5 * now):
            manager.submit()
        ready = wait([texts_read, scheduler.sentinel, detokenizer.sentinel], timeout=1)
        if detokenizer.sentinel in ready or scheduler.sentinel in ready:
            scheduler.terminate()
            sys.exit("Child process terminated. The server is shutting down.")
        if texts_read in ready:
            try:
                manager.handle()
            except EOFError:
                detokenizer.join()
        if now - said > 3:
            said = now
            print(f"#running-req: {len(manager.states)}, finished: {manager.finished}", flush=True)
    requests_write.send(None)
    scheduler.join()
    detokenizer.terminate()


if __name__ == "__main__":
    main()
