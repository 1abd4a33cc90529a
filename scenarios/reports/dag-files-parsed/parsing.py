"""Parses one pipeline file, in a child of the processor"""

import hashlib
import json
import os
import random
import time

PARSE_S = 0.085


def write_file(path, seed, tasks=48, lines=230):
    source = random.Random(seed)
    verbs, things = ("load", "join", "clean", "count", "score"), ("raw", "daily", "users", "items")
    words = [f"{verb}_{thing}" for verb in verbs for thing in things]
    with open(path, "w") as file:
        for number in range(tasks):
            upstream = sorted({source.randrange(number) for _ in range(2)}) if number else []
            file.write(f"task step_{number} after {','.join(f'step_{one}' for one in upstream)}\n")
            for _ in range(lines):
                file.write("  doc " + " ".join(source.choices(words, k=9)) + "\n")


def parse(path, version):
    """The document of the file, and a checksum that shows whether it changed"""
    started, tasks = time.monotonic(), []
    with open(path) as file:
        for line in file:
            if line.startswith("task "):
                _, name, _, upstream = line.rstrip("\n").split(" ")
                tasks.append({"name": name, "upstream": [one for one in upstream.split(",") if one], "docs": ""})
            else:
                tasks[-1]["docs"] += line[6:]
    for task in tasks:
        task["command"] = f"run {task['name']} --version {version}"
        task["docs"] += f"parsed as version {version}\n"
    digest = b""
    while time.monotonic() < started + PARSE_S:
        for task in tasks:
            digest = hashlib.sha256(digest + task["docs"].encode()).digest()
    return {"name": os.path.basename(path), "schedule": "@daily", "checksum": digest.hex(), "tasks": tasks}


def serve(path, version, descriptor):
    with open(descriptor, "w") as stream:
        json.dump(parse(path, version), stream)
