"""The pusher: takes the audio of the listening devices, and turns each conversation into PCM and speech segments"""

import asyncio
import collections
import concurrent.futures
import json
import signal
import struct
import threading
import time
import zlib

import numpy as np

FLUSH_THREADS, SLOTS, SLOT_S, FRAME = 12, 2, 0.24, 8192
encoder_slots = threading.BoundedSemaphore(SLOTS)


def companding_table():
    """The 256 values of mu-law"""
    code = ~np.arange(256, dtype=np.uint8)
    magnitude = ((((code & 15).astype(np.int32) << 3) + 132) << ((code >> 4) & 7)) - 132
    return (np.where(code & 128, -magnitude, magnitude) / 32768).astype(np.float32)


def voice_filters(bands=16):
    """The filters of the voice detector, as means over the finer table that it comes with"""
    table = np.abs(np.random.default_rng(5).normal(size=(1025, 225 * bands)))
    table /= table.sum(0)
    return table.reshape(1025, bands, 225).mean(2).astype(np.float32)


TABLE = companding_table()
FILTERS = voice_filters()


def upsample(samples):
    """Twice the rate, with the mean of the neighbours between them"""
    doubled = np.empty(2 * len(samples), np.float32)
    doubled[::2] = samples
    doubled[1:-1:2] = (samples[:-1] + samples[1:]) / 2
    doubled[-1] = samples[-1]
    return doubled


def flush(user, payload):
    """A conversation's summary: how long it is, how loud, where somebody speaks"""
    with encoder_slots:
        end = time.monotonic() + SLOT_S
        frames = [
            upsample(TABLE[np.frombuffer(payload, np.uint8, min(FRAME, len(payload) - start), start)])
            for start in range(0, len(payload), FRAME)
        ]
        peak = max(float(np.abs(frame).max()) for frame in frames)
        energy = np.array([float(np.square(frame).mean()) for frame in frames])
        pcm = b"".join((frame * (32000 / peak)).astype("<i2").tobytes() for frame in frames)
        speech = np.flatnonzero(energy > np.median(energy)).tolist()
        summary = {"user": user, "samples": len(pcm) // 2, "peak": peak, "check": zlib.crc32(pcm)}
        record = json.dumps({**summary, "speech": speech[:280]}).encode().ljust(2200)
        # The voice detector looks at random places for as long as its share of time lasts
        random, voiced = np.random.default_rng(len(payload)), 0
        while time.monotonic() < end:
            frame = frames[int(random.integers(len(frames)))]
            voiced += int((np.abs(np.fft.rfft(frame[:2048], 2048)) @ FILTERS).max() > 8)
        return record


class Pusher:
    def __init__(self):
        self.records = collections.deque(maxlen=512)
        self.executor = concurrent.futures.ThreadPoolExecutor(FLUSH_THREADS, thread_name_prefix="flush")
        self.received = 0

    async def session(self, reader, writer):
        loop = asyncio.get_running_loop()
        try:
            user = struct.unpack("<I", await reader.readexactly(4))[0]
            while True:
                left = struct.unpack("<I", await reader.readexactly(4))[0]
                audio = bytearray()
                while left:
                    part = await reader.readexactly(min(left, 32768))
                    audio.extend(part)
                    left -= len(part)
                payload = bytes(audio)
                del audio
                self.records.append(await loop.run_in_executor(self.executor, flush, user, payload))
                del payload
                self.received += 1
                writer.write(b"%d\n" % self.received)
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()


async def main():
    pusher, stop = Pusher(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(pusher.session, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    server.close()
    size = sum(map(len, pusher.records)) >> 10
    print(f"{pusher.received} conversations, {len(pusher.records)} records of {size} KiB in all", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
