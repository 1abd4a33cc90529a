"""An asynchronous API server over a small language model: one line of JSON in, one line out"""

import argparse
import asyncio
import concurrent.futures
import functools
import itertools
import json
import signal

import torch

torch.set_num_threads(1)
VOCABULARY = 8192


class Tokenizer:
    def __init__(self):
        self.vocabulary = {f"tok{number:04d}": number for number in range(VOCABULARY)}

    def encode(self, prompt):
        return [self.vocabulary.get(word, 0) for word in prompt.split()]


class RequestState:
    """What the front end knows about a request until its last output"""

    def __init__(self, request_id, prompt, prompt_token_ids, params):
        self.request_id, self.prompt, self.params = request_id, prompt, params
        self.prompt_token_ids = prompt_token_ids
        self.queue = asyncio.Queue()


class OutputProcessor:
    def __init__(self):
        self.request_states = {}

    def add_request(self, state):
        self.request_states[state.request_id] = state

    def process_outputs(self, request_id, output):
        state = self.request_states.pop(request_id, None)
        if state is not None:
            state.queue.put_nowait(output)

    def abort_requests(self, request_ids):
        for request_id in request_ids:
            self.request_states.pop(request_id, None)


class EngineCore:
    """Runs one prefill at a time in a thread of its own"""

    def __init__(self, on_output):
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.slots, self.on_output = asyncio.Semaphore(1), on_output
        self.embedding = torch.nn.Embedding(VOCABULARY, 256)
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256))
            for _ in range(3)
        )

    @torch.inference_mode()
    def prefill(self, ids):
        hidden = self.embedding(torch.tensor(ids[-1024:]))
        for layer in self.layers:
            hidden = hidden + layer(hidden)
        return (hidden[-1] @ self.embedding.weight.T).topk(8).indices.tolist()

    async def add_request_async(self, request_id, ids):
        await self.slots.acquire()
        future = asyncio.get_running_loop().run_in_executor(self.pool, self.prefill, ids)
        future.add_done_callback(functools.partial(self._finished, request_id))

    def _finished(self, request_id, future):
        self.slots.release()
        self.on_output(request_id, future.result())


class AsyncLLM:
    def __init__(self):
        self.tokenizer, self.output_processor = Tokenizer(), OutputProcessor()
        self.engine_core = EngineCore(self.output_processor.process_outputs)

    async def add_request(self, request_id, prompt, params):
        ids = self.tokenizer.encode(prompt)
        state = RequestState(request_id, prompt, ids, params)
        self.output_processor.add_request(state)
        await self.engine_core.add_request_async(request_id, ids)
        return state.queue

    async def generate(self, request_id, prompt, params):
        queue = None
        try:
            queue = await self.add_request(request_id, prompt, params)
            return await queue.get()
        except asyncio.CancelledError:
            if queue is not None:
                self.output_processor.abort_requests([request_id])
            raise


async def handle(llm, numbers, reader, writer):
    """Answers a request; a client that goes away cancels it"""
    try:
        body = json.loads(await reader.readline())
        answer = asyncio.create_task(llm.generate(f"cmpl-{next(numbers)}", body["prompt"], body["params"]))
        gone = asyncio.create_task(reader.read(1))
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            gone.cancel()
            writer.write(json.dumps(answer.result()).encode() + b"\n")
            await writer.drain()
        else:
            answer.cancel()
    except (ConnectionError, ValueError):
        pass
    finally:
        writer.close()


async def serve(port_file):
    llm, numbers, stopped = AsyncLLM(), itertools.count(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    server = await asyncio.start_server(functools.partial(handle, llm, numbers), "127.0.0.1", 0, limit=1 << 22)
    with open(port_file, "w") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    await stopped.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port-file", required=True)
    asyncio.run(serve(parser.parse_args().port_file))
