#!/usr/bin/env python3
"""Writes the licences of every crate that is linked into the command and the modules into one file.

    packaging/licenses.py FILE

Each licence text stands once, with the crates that come under it. A crate whose archive holds no text is named with the
licence that its manifest states. Ends with 1 where a crate states none.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINKED = ("ullage-cli", "ullage-native", "ullage-agent")
TEXT = re.compile(r"(?i)^(licen[cs]e|copying|notice|unlicense)")


def metadata():
    command = [os.environ.get("CARGO") or "cargo", "metadata", "--format-version", "1", "--locked"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def linked(data):
    """The packages from elsewhere that LINKED are built from; what runs only while they are built is none of them."""
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    todo = [id for id, package in packages.items() if package["name"] in LINKED]
    seen = set()
    while todo:
        id = todo.pop()
        if id in seen or any("proc-macro" in target["kind"] for target in packages[id]["targets"]):
            continue
        seen.add(id)
        todo += [
            dependency["pkg"]
            for dependency in nodes[id]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    foreign = [packages[id] for id in seen if packages[id]["source"]]
    return sorted(foreign, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """The licence texts of its archive, also of a C library that it carries one folder below."""
    folder = Path(package["manifest_path"]).parent
    files = [file for pattern in ("*", "*/*") for file in sorted(folder.glob(pattern)) if TEXT.match(file.name)]
    return [file.read_text(errors="replace").strip() for file in files if file.is_file() and file.suffix != ".rs"]


def write(file):
    """Writes them; one line that counts, and the crates that state no licence."""
    crates, by_text, without, unstated = linked(metadata()), {}, [], []
    for package in crates:
        name = f"{package['name']} {package['version']} ({package['license'] or 'licence file'})"
        found = texts(package)
        for text in found:
            by_text.setdefault(text, []).append(name)
        if not found:
            (without if package["license"] else unstated).append(name)
    lines = ["What the command and the modules of ullage are built from, and its licences.", ""]
    lines += ["The Rust standard library (MIT OR Apache-2.0): https://www.rust-lang.org/policies/licenses"]
    lines += [f"Stated in the manifest, without a text: {name}" for name in without]
    for text, names in by_text.items():
        lines += ["", "-" * 80, *names, "-" * 80, "", text]
    Path(file).write_text("\n".join(lines) + "\n")
    counted = f"{len(crates)} crates, {len(by_text)} texts, {len(without)} without a text"
    return counted, unstated if crates else ["no crate was found"]


def main():
    counted, unstated = write(sys.argv[1])
    print(f"{counted}, {len(unstated)} without a licence")
    for name in unstated:
        print(f"WRONG  {name}: neither its manifest nor its archive states a licence")
    return 1 if unstated else 0


if __name__ == "__main__":
    sys.exit(main())
