"""Runs the pipeline of a synthetic population up to its locations"""

import locations
from pipeline import Context

CONFIG = {"seed": 3, "zones": 400, "persons_per_zone": 300, "processes": 2, "maxtasksperchild": 40}


def main():
    chains = Context(CONFIG).stage(locations)
    print(f"{sum(len(chain) for chain in chains.values())} persons with a chain of activities")


if __name__ == "__main__":
    main()
