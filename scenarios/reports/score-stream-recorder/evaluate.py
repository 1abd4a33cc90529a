"""Writes the log of an evaluation: an archive with a member for each sample and its transcript"""

import random
import sys
import zipfile

from recorder import EvalSample, write_sample

SAMPLES, TURNS, CALLS, TOKENS = 240, 24, 160, 300
WORDS = "the model looks at a file and runs its tests before it answers what was asked of it in the task".split()


def transcript(number):
    source = random.Random(number)
    messages = [
        {"role": ("user", "assistant")[turn % 2], "content": " ".join(source.choices(WORDS, k=400))}
        for turn in range(TURNS)
    ]
    events = [
        {"event": "model", "span": f"{number}-{call}", "tokens": source.choices(range(300, 4000), k=TOKENS)}
        for call in range(CALLS)
    ]
    return EvalSample(number, messages, events)


def main():
    with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(SAMPLES):
            write_sample(archive, transcript(number))
    print(f"{SAMPLES} samples evaluated", flush=True)


if __name__ == "__main__":
    main()
