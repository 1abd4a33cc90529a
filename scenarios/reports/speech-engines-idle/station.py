"""The station: a few links between songs when somebody listens, and songs only when the room is empty"""

import json
import os
import socket
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
# The engine, how many links it says, and the seconds of music after them
PROGRAMME = [("chatterbox", 7, 4.2), ("kokoro", 8, 4.0), ("chatterbox", 8, 4.2), ("kokoro", 5, 3.0)]
LINK_S = 0.32


def mix(seconds, random):
    """Songs, faded into each other"""
    end, level = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        one, other = random.standard_normal((2, 44100), np.float32)
        fade = np.linspace(0, 1, 44100, dtype=np.float32)
        level = float(np.abs(one * fade + other * (1 - fade)).max())
    return level


def main():
    service = subprocess.Popen([sys.executable, os.path.join(HERE, "service.py")], stdout=subprocess.PIPE, text=True)
    random = np.random.default_rng(4)
    with socket.create_connection(("127.0.0.1", int(service.stdout.readline()))) as connection:
        answers = connection.makefile("rb")
        for engine, links, music_s in PROGRAMME:
            for link in range(links):
                text = f"link {link}: that was a song of {music_s} minutes, and here is the next one " * 2
                request = {"engine": engine, "text": text, "share_s": LINK_S}
                connection.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(answers.readline())
            print(f"{engine}: {answer['loads']} loads, {answer['unloads']} unloads, then music", flush=True)
            mix(music_s, random)
        answers.close()
    print(service.stdout.read().strip(), flush=True)
    return service.wait()


if __name__ == "__main__":
    sys.exit(main())
