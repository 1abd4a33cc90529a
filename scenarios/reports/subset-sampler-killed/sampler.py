"""Batches of one data set, and batches of several data sets, each of them from one"""

from itertools import accumulate

import torch
from torch.utils.data import BatchSampler, SubsetRandomSampler


class DefaultBatchSampler(BatchSampler):
    def __init__(self, dataset, batch_size, drop_last, generator, seed):
        super().__init__(SubsetRandomSampler(range(len(dataset)), generator=generator), batch_size, drop_last)
        self.generator, self.seed, self.epoch = generator, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        self.generator.manual_seed(self.seed + self.epoch)
        yield from super().__iter__()


class ProportionalBatchSampler:
    """Draws from each data set in proportion to its number of batches"""

    def __init__(self, dataset, batch_samplers, generator, seed):
        self.dataset, self.batch_samplers = dataset, batch_samplers
        self.generator, self.seed, self.epoch = generator, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch
        for sampler in self.batch_samplers:
            sampler.set_epoch(epoch)

    def __iter__(self):
        self.generator.manual_seed(self.seed + self.epoch)
        offsets = [0, *accumulate(len(part) for part in self.dataset.datasets)]
        weights = torch.tensor([float(len(sampler)) for sampler in self.batch_samplers])
        iterators = [iter(sampler) for sampler in self.batch_samplers]
        while weights.sum() > 0:
            part = int(torch.multinomial(weights, 1, generator=self.generator))
            batch = next(iterators[part], None)
            if batch is None:
                weights[part] = 0.0
                continue
            yield [offsets[part] + index for index in batch]

    def __len__(self):
        return sum(len(sampler) for sampler in self.batch_samplers)


class BatchSamplerShard:
    """Of all batches, every so manieth, as there are ranks"""

    def __init__(self, batch_sampler, rank, world):
        self.batch_sampler, self.rank, self.world = batch_sampler, rank, world

    def __iter__(self):
        for number, batch in enumerate(self.batch_sampler):
            if number % self.world == self.rank:
                yield batch

    def __len__(self):
        return len(self.batch_sampler) // self.world
