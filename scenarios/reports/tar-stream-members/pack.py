"""Packs samples of three files each into a tar stream on standard output, with their extended attributes"""

import json
import os
import random
import tarfile

import numpy as np

SIDE, CLASSES, CAPTION_WORDS = 16, 10, 90
SYLLABLES = ["ka", "lo", "mi", "ren", "sto", "vel", "tar", "ni", "gus", "pe", "dor", "ulm"]


def member(name, data, mtime, attributes):
    """The header blocks, the data and the padding of one file"""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mtime = mtime
    info.uname = info.gname = "crawler"
    info.pax_headers = {f"SCHILY.xattr.user.{key}": value for key, value in attributes.items()}
    return info.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % tarfile.BLOCKSIZE)


def main():
    chooser = random.Random(1)
    generator = np.random.default_rng(1)
    vocabulary = ["".join(chooser.choices(SYLLABLES, k=3)) for _ in range(4000)]
    prototypes = generator.integers(40, 200, (CLASSES, 3, SIDE, SIDE))
    noise = generator.integers(-40, 40, (64, 3, SIDE, SIDE))
    out = open(1, "wb", buffering=1 << 20, closefd=False)
    number = 0
    try:
        while True:
            label = chooser.randrange(CLASSES)
            image = np.clip(prototypes[label] + noise[number % len(noise)], 0, 255).astype(np.uint8)
            caption = " ".join(chooser.choices(vocabulary, k=CAPTION_WORDS))
            attributes = {
                "source": f"https://images.example.org/{number // 1000:06d}/{number:09d}?width=512&version={label}",
                "caption": caption,
                "checksum": f"{chooser.getrandbits(128):032x}",
            }
            key, mtime = f"{number // 1000:06d}/{number:09d}", 1.6e9 + number * 0.25
            described = json.dumps({"width": SIDE, "height": SIDE, "words": CAPTION_WORDS}).encode()
            out.write(member(f"{key}.rgb", image.tobytes(), mtime, attributes))
            out.write(member(f"{key}.cls", str(label).encode(), mtime, attributes))
            out.write(member(f"{key}.json", described, mtime, attributes))
            number += 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    main()
