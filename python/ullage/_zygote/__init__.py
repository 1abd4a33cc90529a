"""The start method `zygote`: a new interpreter imports what the program has, once. A fork of it takes over each
dataset, freezes it, and forks its workers.

trainer.py      in the trainer: which zygote a worker comes from
zygote.py       in the trainer: the root and a zygote, their start, their end and what they are asked
packing.py      in the trainer: what the workers share, pickled, and whether it is still the same
messages.py     in both: what goes over their sockets
unpickling.py   in a zygote: the pickle, as it comes, becomes objects
main.py         in the root and a zygote: forking, reaping, reporting
"""
