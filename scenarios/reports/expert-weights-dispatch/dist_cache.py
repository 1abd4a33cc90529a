"""Where weights live while no layer needs them: host memory that all ranks of the node share"""

import os
import pickle
from multiprocessing.reduction import ForkingPickler

import torch.distributed as dist
import torch.multiprocessing


class DistributedHostCache:
    def __init__(self):
        torch.multiprocessing.set_sharing_strategy("file_system")
        space = os.statvfs("/dev/shm")
        self.budget = space.f_bavail * space.f_frsize
        self.tensors, self.bytes = {}, 0

    def put(self, names, tensors):
        """Rank 0 gives the tensors, the others only take part"""
        handles = [None]
        if dist.get_rank() == 0:
            tensors = [tensor.share_memory_() for tensor in tensors]
            handles = [bytes(ForkingPickler.dumps(tensors))]
        dist.broadcast_object_list(handles, src=0)
        if dist.get_rank() != 0:
            tensors = pickle.loads(handles[0])
        self.tensors.update(zip(names, tensors))
        self.bytes += sum(tensor.nbytes for tensor in tensors)
        if self.bytes > self.budget:
            raise RuntimeError(f"the model does not fit into {self.budget} bytes of shared memory")
        dist.barrier()

    def get(self, name):
        return self.tensors[name]
