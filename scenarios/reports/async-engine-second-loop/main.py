"""The benchmark: a system under test for each scenario"""

import argparse
import asyncio
import concurrent.futures
import queue
import time

import torch

import engine

torch.set_num_threads(1)
OFFLINE_S, BATCH = 22.0, 24
LENGTHS = [64, 96, 160, 256, 320]


class SUT:
    """Offline: all queries are there, and go through the engine in batches"""

    def __init__(self):
        self.engine = engine.LLM()

    def run(self):
        started, number, tokens = time.monotonic(), 0, 0
        while time.monotonic() - started < OFFLINE_S:
            length = LENGTHS[min(number // 2, len(LENGTHS) - 1)]
            prompts = [(number * BATCH + item) % engine.VOCABULARY for item in range(BATCH)]
            tokens += sum(len(output) for output in self.engine.generate(prompts, length))
            number += 1
            if number % 5 == 0:
                print(f"batch {number}: {tokens} tokens", flush=True)
        print(f"Samples per second: {number * BATCH / (time.monotonic() - started):.2f}", flush=True)


class SUTServer:
    """Server: queries come one by one, and a thread processes them"""

    def __init__(self):
        self.engine = engine.AsyncLLM()
        self.queries = queue.Queue()

    async def stream_output(self, prompt):
        output = await self.engine.generate(prompt, 64)
        print(f"query {prompt}: {len(output)} tokens", flush=True)
        return output

    def process_queries(self):
        answered = 0
        while (prompt := self.queries.get()) is not None:
            asyncio.run(self.stream_output(prompt))
            answered += 1
        return answered

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="process_queries") as executor:
            processed = executor.submit(self.process_queries)
            for prompt in range(200):
                self.queries.put(prompt)
            self.queries.put(None)
            print(f"{processed.result()} queries", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenario", choices=["Offline", "Server"], required=True)
    options = parser.parse_args()
    print("Loaded model", flush=True)
    sut = {"Offline": SUT, "Server": SUTServer}[options.scenario]()
    print("Starting Benchmark run", flush=True)
    sut.run()


if __name__ == "__main__":
    main()
