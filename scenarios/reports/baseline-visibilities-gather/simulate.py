"""A rank of the simulation: its share of the tasks, and on rank 0 the whole data in the end"""

import time

import numpy as np
from mpi import Comm
from uvtask import Telescope

ANTENNAS, SOURCES, TIMES, CHANNELS, BLOCK, BLOCKS, BLOCK_S = 64, 48, 14, 24, 400, 250, 0.088


def main():
    comm = Comm()
    telescope = comm.bcast(Telescope(ANTENNAS, SOURCES, 11) if comm.rank == 0 else None)
    tasks, begin = [], time.monotonic()
    for block in range(BLOCKS):
        first = (block * comm.size + comm.rank) * BLOCK
        local = [telescope.make(number, CHANNELS, TIMES) for number in range(first, first + BLOCK)]
        telescope.compute(local)
        tasks.extend(local)
        # The brightest source is followed as long as there is time
        while time.monotonic() < begin + (block + 1) * BLOCK_S:
            telescope.compute(local[:40])
        if comm.rank == 0 and (block + 1) % 50 == 0:
            print(f"{(block + 1) * BLOCK * comm.size} tasks", flush=True)
    comm.barrier()
    if comm.rank == 0:
        print("Calculations complete.", flush=True)
    gathered = comm.gather(tasks)
    if comm.rank == 0:
        data = np.zeros((comm.size * len(tasks), 4), dtype=complex)
        for part in gathered:
            for task in part:
                data[task.index[0]] = task.visibility
        print(f"{len(data)} visibilities, mean amplitude {np.abs(data).mean():.3f}", flush=True)
    comm.finalize()


if __name__ == "__main__":
    main()
