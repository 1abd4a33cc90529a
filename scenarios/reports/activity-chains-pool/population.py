"""The stage of the population: persons with a home, and the purposes of their day"""

import numpy as np

PURPOSES = ("work", "education", "shop", "leisure")


def execute(context):
    source = np.random.default_rng(context.config["seed"])
    zones, persons = context.config["zones"], context.config["persons_per_zone"]
    return {
        "centres": source.uniform(0.0, 60.0, (zones, 2)),
        "homes": source.normal(0.0, 2.0, (zones, persons, 2)).astype(np.float32),
        "purposes": source.integers(0, len(PURPOSES), (zones, persons, 3)).astype(np.int8),
    }
