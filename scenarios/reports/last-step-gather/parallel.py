"""Data parallelism over replicas of a module, with a thread for each"""

import copy
import threading

import torch


def scatter(tensor, count):
    return tensor.chunk(count)


def gather(outputs):
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        if first.dim() == 0:
            return torch.stack(outputs)
        return torch.cat(outputs, dim=0)
    return type(first)(map(gather, zip(*outputs)))


def parallel_apply(replicas, inputs):
    results = [None] * len(inputs)

    def worker(position, module, given):
        try:
            results[position] = module(*given)
        except Exception as error:
            results[position] = error

    threads = [
        threading.Thread(target=worker, args=(position, module, given))
        for position, (module, given) in enumerate(zip(replicas, inputs))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def replicate(module, count):
    """Copies of a module that share its parameters"""
    shared = {id(parameter): parameter for parameter in module.parameters()}
    return [copy.deepcopy(module, dict(shared)) for _ in range(count)]


class DataParallel(torch.nn.Module):
    def __init__(self, module, devices):
        super().__init__()
        self.module, self.devices = module, devices

    def forward(self, *given):
        inputs = list(zip(*(scatter(one, self.devices) for one in given)))
        if len(inputs) == 1:
            return self.module(*inputs[0])
        return gather(parallel_apply(replicate(self.module, len(inputs)), inputs))
