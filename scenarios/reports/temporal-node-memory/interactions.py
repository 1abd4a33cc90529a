"""Interactions in the order of their times: new authors appear all the time, and write with old ones as well"""

import torch


class InteractionStream:
    """Nodes have their numbers in the order in which they appear"""

    def __init__(self, nodes, batches, edge_width):
        self.nodes, self.batches, self.edge_width = nodes, batches, edge_width

    def batch(self, number):
        generator = torch.Generator().manual_seed(number)
        start = self.nodes * number // self.batches
        end = self.nodes * (number + 1) // self.batches
        fresh = torch.arange(start, end)
        half = len(fresh) // 2
        old = torch.randint(0, end, (half // 4,), generator=generator)
        sources = torch.cat([fresh[:half], old])
        destinations = torch.cat([fresh[half : 2 * half], old.flip(0)])
        edges = torch.randn(len(sources), self.edge_width, generator=generator)
        times = float(number) + torch.rand(len(sources), generator=generator).sort()[0]
        return sources, destinations, edges, times
