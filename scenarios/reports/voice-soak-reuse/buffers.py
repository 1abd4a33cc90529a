"""What a call needs while it runs; a call that has ended leaves it to the next one"""

import torch

FRAME, BINS = 480, 241


class Buffers:
    def __init__(self):
        self.jitter = torch.full((200, FRAME), 0.0)
        self.echo = torch.full((1100, FRAME), 0.0)
        self.spectra = torch.full((1500, BINS), 0.0)
        self.filter = torch.full((FRAME,), 1.0)

    def reset(self):
        for tensor in (self.jitter, self.echo, self.spectra):
            tensor.zero_()
        self.filter.fill_(1.0)


class Pool:
    """As many as there have been calls at a time: none is made while frames flow once that many are there"""

    def __init__(self):
        self.free, self.made = [], 0

    def take(self):
        if self.free:
            return self.free.pop()
        self.made += 1
        return Buffers()

    def give(self, buffers):
        buffers.reset()
        self.free.append(buffers)
