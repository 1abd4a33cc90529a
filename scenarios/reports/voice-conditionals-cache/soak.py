"""A soak of the speech server: two texts with each of many reference voices"""

import json
import os
import select
import socket
import sys
import wave

import numpy as np

RATE, VOICE_S, VOICES = 24_000, 10, 50
TEXTS = [
    "Good morning, and thank you for waiting. How may I help you today?",
    "Your parcel has left our house, and it will be with you on Thursday between nine and eleven.",
]


def record(path, number):
    """Stands in for the recording of a voice"""
    numbers = np.random.default_rng(number)
    seconds = np.arange(VOICE_S * RATE) / RATE
    pitch = 85 + 3 * number + 6 * np.sin(2 * np.pi * 0.7 * seconds)
    sound = sum(np.sin(2 * np.pi * part * pitch * seconds) / part for part in range(1, 6))
    sound += 0.1 * numbers.standard_normal(len(seconds))
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((sound / 4 * 32767).astype("<i2").tobytes())


def connect(path):
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            select.select([], [], [], 0.2)


def main():
    os.makedirs("voices", exist_ok=True)
    with connect(sys.argv[1]) as connection, connection.makefile("rwb") as stream:
        for number in range(VOICES):
            voice = os.path.join("voices", f"voice_{number:03}.wav")
            record(voice, number)
            samples = 0
            for text in TEXTS:
                stream.write(json.dumps({"text": text, "voice": voice, "exaggeration": 0.5}).encode() + b"\n")
                stream.flush()
                samples += json.loads(stream.readline())["samples"]
            if number % 10 == 9:
                print(f"{number + 1} voices, {samples / RATE:.1f} s of speech with the last", flush=True)


if __name__ == "__main__":
    main()
