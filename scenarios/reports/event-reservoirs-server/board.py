"""Loads the events of all runs below a folder into memory, a sample of them for each tag"""

import argparse
import os
import random
import signal
import threading

from events import Reader

RELOAD_S = 0.4
SAMPLES = {"images": 10, "scalars": 1000}


class Reservoir:
    """A sample of limited size of all that was added, each with the same probability; the newest is always in it"""

    def __init__(self, size, chooser):
        self.size, self.chooser, self.seen, self.items = size, chooser, 0, []

    def add(self, item):
        self.seen += 1
        if len(self.items) < self.size:
            self.items.append(item)
            return
        place = self.chooser.randrange(self.seen)
        if place < self.size:
            self.items.pop(place)
            self.items.append(item)
        else:
            self.items[-1] = item


class EventAccumulator:
    """The events of one run"""

    def __init__(self, folder):
        self.folder = folder
        self.chooser = random.Random(0)
        self.readers = {}
        self.reservoirs = {}

    def reload(self):
        for name in sorted(os.listdir(self.folder)):
            if name not in self.readers:
                self.readers[name] = Reader(os.path.join(self.folder, name))
            for event, value in self.readers[name].load():
                key = (event["kind"], event["tag"])
                if key not in self.reservoirs:
                    self.reservoirs[key] = Reservoir(SAMPLES[event["kind"]], self.chooser)
                self.reservoirs[key].add((event["step"], value or event["value"]))

    def held(self):
        return sum(len(reservoir.items) for key, reservoir in self.reservoirs.items() if key[0] == "images")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--logdir", required=True)
    logdir = parser.parse_args().logdir
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    runs, rounds = {}, 0
    while not stop.wait(RELOAD_S):
        for name in sorted(os.listdir(logdir)):
            if name not in runs:
                runs[name] = EventAccumulator(os.path.join(logdir, name))
            runs[name].reload()
        rounds += 1
        if rounds % 10 == 0:
            print(f"board: {len(runs)} runs, {sum(run.held() for run in runs.values())} images", flush=True)


if __name__ == "__main__":
    main()
