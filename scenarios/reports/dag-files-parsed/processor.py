"""Keeps the pipelines up to date: parses each file again and again, every time in a child of its own"""

import gc
import json
import os
import sys
import tempfile
import time

import parsing
from model import Pipeline

FILES, SECONDS = 30, 28.0


def use_memory_of_parent():
    """Children only read what was there before them, and so they should leave it shared"""
    os.register_at_fork(before=gc.freeze, after_in_parent=gc.unfreeze)


def parse_in_child(path, version):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            parsing.serve(path, version, writing)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading) as stream:
        document = json.load(stream)
    os.waitpid(child, 0)
    return Pipeline(document)


def main():
    use_memory_of_parent()
    pipelines, begin, parsed = {}, time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"pipeline_{number:02}.txt") for number in range(FILES)]
        for number, path in enumerate(paths):
            parsing.write_file(path, number)
        while time.monotonic() < begin + SECONDS:
            for path in paths:
                pipelines[path] = parse_in_child(path, parsed)
                parsed += 1
            roots = sum(len(pipeline.roots()) for pipeline in pipelines.values())
            print(f"{parsed} files parsed, {len(pipelines)} pipelines with {roots} roots", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
