"""One rank: a buffer of a few hundred MB that it made at its start, and steps over it."""

import os

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
buffer = bytearray(os.urandom(1 << 20) * 120)
total = 0
for step in range(900):
    at = (step * 131_071 + rank) % (len(buffer) - 100_000)
    total += sum(buffer[at : at + 100_000])
print(rank, total)
