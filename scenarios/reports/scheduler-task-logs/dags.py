"""What the DAG files of the installation say: their tasks, and what is rendered for each"""

import random
import string

TASKS = 12


def tasks(name, seed):
    """The tasks of a DAG, each with the text of its rendered fields"""
    source = random.Random(f"{name}/{seed}")
    words = ["".join(source.choices(string.ascii_lowercase, k=source.randint(4, 11))) for _ in range(300)]
    for number in range(TASKS):
        yield f"{name}.task_{number}", " ".join(source.choices(words, k=1600))
