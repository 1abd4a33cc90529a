"""A coding agent's command line: it prints what happens as lines of JSON, first of all what it was told"""

import hashlib
import json
import sys
import time

WORK_S = 0.9


def emit(**event):
    print(json.dumps(event), flush=True)


def main():
    name, path = sys.argv[1:]
    with open(path) as file:
        prompt = file.read()
    emit(type="system", subtype="init", agent=name, prompt=prompt)
    begin, digest = time.monotonic(), prompt.encode()
    for turn in range(1, 7):
        while time.monotonic() < begin + turn * WORK_S / 6:
            digest = hashlib.sha256(digest * 40).digest()
        emit(type="assistant", agent=name, text=f"turn {turn}: {digest.hex()}")
    emit(type="result", agent=name, text=" ".join(f"{digest.hex()}:{number:x}" for number in range(90)))


if __name__ == "__main__":
    main()
