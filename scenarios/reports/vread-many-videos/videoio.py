"""Reading and writing of videos by a decoder in a process of its own"""

import atexit
import gzip
import subprocess

import numpy as np


class Reader:
    """Frames of a video from the decoder's standard output"""

    def __init__(self, path, shape):
        self.shape = shape
        self.size = int(np.prod(shape))
        self.process = subprocess.Popen(
            ["gzip", "-dc", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        atexit.register(self.close)

    def next_frame(self):
        data = self.process.stdout.read(self.size)
        if len(data) < self.size:
            return None
        return np.frombuffer(data, dtype=np.uint8).reshape(self.shape)

    def frames(self, num_frames):
        for _ in range(num_frames):
            frame = self.next_frame()
            if frame is None:
                break
            yield frame

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def vread(path, num_frames, shape):
    reader = Reader(path, shape)
    video = np.empty((num_frames, *shape), np.uint8)
    for number, frame in enumerate(reader.frames(num_frames)):
        video[number] = frame
    return video


def vwrite(path, video):
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(video.tobytes())
