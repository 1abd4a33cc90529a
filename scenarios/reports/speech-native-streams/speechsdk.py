"""The part of a speech library that lies above its native one"""

import ctypes
import queue
import threading
import time

import numpy as np

RATE, CHUNK = 24_000, 8_192

_native = ctypes.CDLL(None)
_native.malloc.restype = ctypes.c_void_p
_native.malloc.argtypes = [ctypes.c_size_t]
_native.malloc_trim.argtypes = [ctypes.c_size_t]


class Link(ctypes.Structure):
    """A buffer of a native output, and the one behind it"""


Link._fields_ = [("next", ctypes.POINTER(Link)), ("size", ctypes.c_size_t), ("samples", ctypes.c_char * CHUNK)]


def _append(last, data):
    """Puts the samples into a new buffer behind the last one"""
    address = _native.malloc(ctypes.sizeof(Link))
    link = ctypes.cast(address, ctypes.POINTER(Link))
    link.contents.next = None
    link.contents.size = len(data)
    ctypes.memmove(address + Link.samples.offset, data, len(data))
    if last:
        last.contents.next = link
    return link


class SpeechSynthesisResult:
    def __init__(self, chunks):
        self.chunks = chunks


class SpeechSynthesizer:
    """Speaks texts in a thread of its own"""

    def __init__(self):
        self.texts = queue.Queue(1)
        threading.Thread(target=self._speak, daemon=True).start()

    def _speak(self):
        while True:
            text, seconds, until, chunks = self.texts.get()
            time_axis = np.arange(int(seconds * RATE), dtype=np.float32) / RATE
            wave = np.zeros_like(time_axis)
            harmonic = 0
            while harmonic == 0 or time.monotonic() < until:
                pitch = 90.0 + hash_of(text) % 80
                wave += np.sin(2.0 * np.pi * pitch * (1 + harmonic % 24) * time_axis) / (1 + harmonic)
                harmonic += 1
            data = (wave * (12_000.0 / np.abs(wave).max())).astype(np.int16).tobytes()
            for start in range(0, len(data), CHUNK):
                chunks.put(data[start : start + CHUNK])
            chunks.put(None)

    def start_speaking_text(self, text, seconds, within):
        chunks = queue.Queue(32)
        self.texts.put((text, seconds, time.monotonic() + within, chunks))
        return SpeechSynthesisResult(chunks)


class AudioDataStream:
    """The samples of a result, as they come"""

    def __init__(self, result):
        self.result = result
        self.first = self.last = None

    def read_data(self):
        data = self.result.chunks.get()
        if data is None:
            return b""
        self.last = _append(self.last, data)
        self.first = self.first or self.last
        return ctypes.string_at(ctypes.addressof(self.last.contents) + Link.samples.offset, self.last.contents.size)

    def detach_input(self):
        self.result = None


class PushAudioOutputStream:
    def __init__(self, result):
        self.result = result

    def read_data(self):
        return self.result.chunks.get() or b""

    def detach_input(self):
        self.result = None


def hash_of(text):
    return sum(text.encode())


def malloc_trim():
    return _native.malloc_trim(0)
