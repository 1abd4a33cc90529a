"""Speaks one paragraph after the other, and measures the level of what comes"""

import gc
import sys
import time

import numpy as np

import speechsdk

SECONDS, PARAGRAPH_S, SPEECH_S = 38.0, 0.12, 28.0


def speak(synthesizer, kind, text):
    """The number of bytes of a paragraph, and its level"""
    result = synthesizer.start_speaking_text(text, SPEECH_S, PARAGRAPH_S)
    stream = {"audiodata": speechsdk.AudioDataStream, "push": speechsdk.PushAudioOutputStream}[kind](result)
    size, energy = 0, 0.0
    while data := stream.read_data():
        samples = np.frombuffer(data, np.int16).astype(np.float32)
        size, energy = size + len(data), energy + float(samples @ samples)
    stream.detach_input()
    return size, (energy / (size // 2)) ** 0.5


def main():
    synthesizer, started, number, total = speechsdk.SpeechSynthesizer(), time.monotonic(), 0, 0
    while time.monotonic() - started < SECONDS:
        size, level = speak(synthesizer, sys.argv[1], f"Paragraph {number} of the chapter")
        number, total = number + 1, total + size
        if number % 40 == 0:
            gc.collect()
            speechsdk.malloc_trim()
            print(f"paragraph {number}: {total >> 20} MiB of samples, level {level:.0f}", flush=True)
    print(f"{number} paragraphs", flush=True)


if __name__ == "__main__":
    main()
