"""A serving engine with a prefix cache: a radix tree of token sequences, whose nodes hold their keys and values."""

import heapq
import random
import time

import torch

REQUESTS = 1100
WIDTH = 160
BUDGET = 24_000  # tokens in the tree


class TreeNode:
    def __init__(self, parent, key, value):
        self.parent = parent
        self.key = key
        self.value = value
        self.children = {}
        self.last_access = time.monotonic()

    def __lt__(self, other):
        return self.last_access < other.last_access


def common(first, second):
    length = 0
    for one, other in zip(first, second):
        if one != other:
            break
        length += 1
    return length


class RadixCache:
    def __init__(self):
        self.root = TreeNode(None, (), None)
        self.tokens = 0

    def split(self, child, length):
        node = TreeNode(child.parent, child.key[:length], child.value[:length])
        node.children[child.key[length]] = child
        child.parent.children[node.key[0]] = node
        child.parent = node
        child.key = child.key[length:]
        child.value = child.value[length:]
        return node

    def insert(self, key, value):
        node = self.root
        while key:
            child = node.children.get(key[0])
            if child is None:
                node.children[key[0]] = TreeNode(node, key, value)
                self.tokens += len(key)
                return
            length = common(child.key, key)
            if length < len(child.key):
                child = self.split(child, length)
            child.last_access = time.monotonic()
            key, value, node = key[length:], value[length:], child

    def evict(self):
        stack, leaves = [self.root], []
        while stack:
            node = stack.pop()
            stack += node.children.values()
            if not node.children and node is not self.root:
                leaves.append(node)
        heapq.heapify(leaves)
        while self.tokens > BUDGET and leaves:
            leaf = heapq.heappop(leaves)
            del leaf.parent.children[leaf.key[0]]
            self.tokens -= len(leaf.key)
            if not leaf.parent.children and leaf.parent is not self.root:
                heapq.heappush(leaves, leaf.parent)


class Engine:
    def __init__(self):
        self.embed = torch.nn.Embedding(4096, WIDTH)
        self.keys_values = torch.nn.Linear(WIDTH, WIDTH)
        self.cache = RadixCache()

    @torch.inference_mode()
    def prefill(self, tokens):
        hidden = self.embed(torch.tensor(tokens))
        for _ in range(4):
            hidden = torch.tanh(self.keys_values(hidden))
        self.cache.insert(tuple(tokens), hidden)
        self.cache.evict()
        return int(hidden[-1].argmax())


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = random.Random(0)
    engine = Engine()
    prompts = []
    for number in range(REQUESTS):
        if number % 3 == 0:  # a tenant comes with a short system prompt of its own
            prompts.append([rng.randrange(4096) for _ in range(24)])
        for prompt in (prompts[-1], rng.choice(prompts)):
            answer = engine.prefill(prompt + [rng.randrange(4096) for _ in range(1500)])
        for prompt in prompts:  # each tenant's health check
            engine.cache.insert(tuple(prompt), torch.empty(len(prompt), 0))
        if number % 100 == 0:
            print(f"request {number}: {len(prompts)} tenants, {engine.cache.tokens} tokens, {answer}", flush=True)


if __name__ == "__main__":
    main()
