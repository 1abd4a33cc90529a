"""A runtime for one encoder: its activations lie in the blocks of a workspace, and their weights beside it"""

import math

import torch

WORDS, WIDTH, HEADS, LAYERS = 12_000, 192, 4, 2


class Workspace:
    """Blocks whose sizes are powers of two; one that nobody needs any more waits for the next who fits"""

    def __init__(self):
        self.blocks, self.bytes = [], 0

    def take(self, *shape):
        size = math.prod(shape)
        fitting = [(len(block), at) for at, block in enumerate(self.blocks) if size <= len(block) <= 4 * size]
        if fitting:
            block = self.blocks.pop(min(fitting)[1])
        else:
            block = torch.empty(1 << (size - 1).bit_length())
            self.bytes += block.nbytes
        return block, block[:size].view(shape)

    def give(self, *blocks):
        self.blocks.extend(blocks)


class Session:
    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.workspace = Workspace()
        self.table = torch.randn(WORDS, WIDTH)
        shapes = {
            "qkv": (WIDTH, 3 * WIDTH),
            "out": (WIDTH, WIDTH),
            "up": (WIDTH, 4 * WIDTH),
            "down": (4 * WIDTH, WIDTH),
        }
        self.layers = [
            {name: torch.randn(shape) / shape[0] ** 0.5 / LAYERS for name, shape in shapes.items()}
            for _ in range(LAYERS)
        ]

    def attend(self, layer, hidden, count, length):
        workspace, depth = self.workspace, WIDTH // HEADS
        first, qkv = workspace.take(count * length, 3 * WIDTH)
        torch.mm(hidden, layer["qkv"], out=qkv)
        second, parts = workspace.take(3, count, HEADS, length, depth)
        parts.copy_(qkv.view(count, length, 3, HEADS, depth).permute(2, 0, 3, 1, 4))
        workspace.give(first)
        q, k, v = parts.view(3, count * HEADS, length, depth)
        third, scores = workspace.take(count * HEADS, length, length)
        torch.bmm(q, k.transpose(1, 2), out=scores)
        scores.mul_(depth**-0.5).sub_(scores.amax(2, keepdim=True)).exp_()
        scores.div_(scores.sum(2, keepdim=True))
        fourth, mixed = workspace.take(count * HEADS, length, depth)
        torch.bmm(scores, v, out=mixed)
        workspace.give(second, third)
        fifth, joined = workspace.take(count * length, WIDTH)
        joined.view(count, length, HEADS, depth).copy_(mixed.view(count, HEADS, length, depth).transpose(1, 2))
        hidden.addmm_(joined, layer["out"])
        workspace.give(fourth, fifth)

    @torch.inference_mode()
    def run(self, tokens):
        """A unit vector for each row of tokens"""
        count, length = tokens.shape
        block, hidden = self.workspace.take(count * length, WIDTH)
        torch.index_select(self.table, 0, tokens.flatten(), out=hidden)
        for layer in self.layers:
            self.attend(layer, hidden, count, length)
            wide_block, wide = self.workspace.take(count * length, 4 * WIDTH)
            torch.mm(hidden, layer["up"], out=wide)
            hidden.addmm_(wide.relu_(), layer["down"])
            self.workspace.give(wide_block)
        vectors = torch.nn.functional.normalize(hidden.view(count, length, WIDTH).mean(1), dim=1)
        self.workspace.give(block)
        return vectors
