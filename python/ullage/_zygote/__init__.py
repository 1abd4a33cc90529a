"""The start method `zygote`: a new interpreter takes over the dataset once, freezes it, and forks all workers.

trainer.py      in the trainer: which zygote a worker comes from
zygote.py       in the trainer: one zygote, its start, its end and what it is asked
packing.py      in the trainer: what the workers share, pickled, and whether it is still the same
messages.py     in both: what goes over their sockets
unpickling.py   in the zygote: the pickle, as it comes, becomes objects
main.py         in the zygote: forking, reaping, reporting
"""
