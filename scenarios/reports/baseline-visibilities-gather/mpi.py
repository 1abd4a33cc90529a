"""The few calls of MPI that the simulation needs"""

import os

import torch.distributed as dist


class Comm:
    def __init__(self):
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        store = "file://" + os.environ["RENDEZVOUS"]
        dist.init_process_group("gloo", init_method=store, rank=self.rank, world_size=self.size)

    def barrier(self):
        dist.barrier()

    def bcast(self, value):
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value):
        """A list with the value of each rank, on rank 0"""
        values = [None] * self.size if self.rank == 0 else None
        dist.gather_object(value, values, dst=0)
        return values

    def finalize(self):
        dist.destroy_process_group()
