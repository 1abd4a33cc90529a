"""Serves questions about documents with two tensor parallel ranks, which keep the chunks of documents in host memory"""

import collections
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
RUN_S, REQUEST_S = 37.0, 0.055
MAX_LOCAL_CPU_SIZE = 200 * 2**20
LAYERS, HEADS, HEAD, CHUNK = 4, 5, 16, 256
DOCUMENTS, CHUNKS = 3000, 4


class LocalCPUBackend:
    """A pool of chunks of keys and values, of which the least recently used one goes when it is full"""

    def __init__(self, size):
        self.shape = (LAYERS, CHUNK, HEADS, HEAD)
        numbers = LAYERS * CHUNK * HEADS * HEAD
        self.pool = torch.empty(size // (4 * numbers), *self.shape)
        self.free = list(range(len(self.pool) - 1, -1, -1))
        self.hot = collections.OrderedDict()
        self.evicted = 0

    def get(self, key):
        slot = self.hot.get(key)
        if slot is None:
            return None
        self.hot.move_to_end(key)
        return self.pool[slot]

    def put(self, key, chunk):
        if not self.free:
            _, slot = self.hot.popitem(last=False)
            self.free.append(slot)
            self.evicted += 1
        slot = self.free.pop()
        self.pool[slot].copy_(chunk)
        self.hot[key] = slot


class Shard(torch.nn.Module):
    """The heads of this rank"""

    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(64, LAYERS * HEADS * HEAD)
        self.out = torch.nn.Linear(HEADS * HEAD, 64)

    def chunk(self, document, number):
        generator = torch.Generator().manual_seed(document * CHUNKS + number)
        hidden = torch.randn(CHUNK, 64, generator=generator)
        return self.project(hidden).view(CHUNK, LAYERS, HEADS, HEAD).transpose(0, 1)

    def attend(self, chunks, query):
        for chunk in chunks:
            for layer in chunk:
                scores = torch.einsum("hd,thd->ht", query, layer).softmax(1)
                query = query + torch.einsum("ht,thd->hd", scores, layer)
        return self.out(query.reshape(-1))


def answer(model, backend, document, seconds):
    until = time.monotonic() + seconds
    chunks, hits = [], 0
    for number in range(CHUNKS):
        chunk = backend.get((document, number))
        if chunk is None:
            backend.put((document, number), model.chunk(document, number))
            chunk = backend.get((document, number))
        else:
            hits += 1
        chunks.append(chunk)
    query = torch.ones(HEADS, HEAD)
    while True:
        hidden = model.attend(chunks, query)
        if time.monotonic() > until:
            return hidden, hits


@torch.inference_mode()
def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model, backend = Shard(), LocalCPUBackend(MAX_LOCAL_CPU_SIZE)
    popularity = 1.0 / (torch.arange(DOCUMENTS) + 60.0)
    questions = torch.Generator().manual_seed(11)
    end, number, hits = time.monotonic() + RUN_S, 0, 0
    going = torch.ones(1)
    while going.item() > 0:
        document = int(torch.multinomial(popularity, 1, generator=questions))
        hidden, found = answer(model, backend, document, REQUEST_S)
        dist.all_reduce(hidden)
        number += 1
        hits += found
        going.fill_(1.0 if time.monotonic() < end else 0.0)
        dist.broadcast(going, 0)
        if rank == 0 and number % 50 == 0:
            share = hits / (number * CHUNKS)
            state = f"{len(backend.hot)} chunks, {backend.evicted} evicted"
            print(f"{number} requests, hit rate {share:.2f}, {state}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
