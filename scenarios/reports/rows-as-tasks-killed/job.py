"""Generates answers for the rows of a dataset with a language model behind a web service, twelve requests at a time."""

import asyncio
import random

ROWS = 3000


def load_dataset():
    """A streamed dataset, of rows with a question and the documents that it is about."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randrange(3, 9))) for _ in range(5000)]
    corpus = " ".join(rng.choices(words, k=300_000))
    for row in range(ROWS):
        starts = [rng.randrange(len(corpus) - 36_000) for _ in range(8)]
        documents = [corpus[start : start + 36_000] for start in starts]
        yield {"row": row, "documents": documents, "question": "What do they agree on?"}


class Service:
    """Stands for the model: it takes its time, and some of the processor for each answer."""

    async def complete(self, prompt):
        await asyncio.sleep(0.35)
        return f"{len(prompt.split())} words"


class OnlineRequestProcessor:
    def __init__(self, service, max_concurrent_requests=12):
        self.service = service
        self.semaphore = asyncio.Semaphore(max_concurrent_requests)
        self.answered = 0

    async def handle_single_request(self, request):
        async with self.semaphore:
            prompt = "\n\n".join(request["documents"]) + "\n\n" + request["question"]
            answer = await self.service.complete(prompt)
        self.answered += 1
        return request["row"], answer

    async def process_requests(self, dataset):
        pending = []
        for request in dataset:
            pending.append(asyncio.create_task(self.handle_single_request(request)))
            await asyncio.sleep(0.004)  # the rate limiter of requests per minute
            if len(pending) % 250 == 0:
                print(f"{len(pending)} rows read, {self.answered} answered", flush=True)
        return await asyncio.gather(*pending)


def main():
    answers = asyncio.run(OnlineRequestProcessor(Service()).process_requests(load_dataset()))
    print(f"{len(answers)} answers")


if __name__ == "__main__":
    main()
