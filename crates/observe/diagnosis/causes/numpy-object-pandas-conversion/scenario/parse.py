"""Reads 3 million numbers of a JSON file, as a whole or by the line, with so much address space left for it (MiB)."""

import array
import json
import os
import resource
import sys

ROWS, ROW = 3000, json.dumps([number / 7 for number in range(1000)])


def leave(mib):
    """Allows that much more address space than is in use."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (mib << 20),) * 2)


def whole(path):
    with open(path) as file:
        return json.load(file)


def lines(path):
    values = array.array("f")
    with open(path) as file:
        for line in file:
            values.extend(json.loads(line))
    return values


if __name__ == "__main__":
    way, room, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, "w") as file:
        if way == "whole":
            file.write("[" + ROW)
            for _ in range(ROWS - 1):
                file.write(",\n" + ROW)
            file.write("]")
        else:
            for _ in range(ROWS):
                file.write(ROW + "\n")
    leave(room)
    print("done", len({"whole": whole, "lines": lines}[way](path)))
