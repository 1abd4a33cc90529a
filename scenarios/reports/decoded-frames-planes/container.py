"""Video containers: packets that are decoded to frames, each with its format and its planes"""

import pickle
import zlib

import numpy as np

GROUP = 40


class VideoFormatComponent:
    def __init__(self, format, index):
        self.format, self.index = format, index

    @property
    def width(self):
        return self.format.width if self.index == 0 else self.format.width // 2

    @property
    def height(self):
        return self.format.height if self.index == 0 else self.format.height // 2


class VideoFormat:
    def __init__(self, name, width, height):
        self.name, self.width, self.height = name, width, height
        self.components = tuple(VideoFormatComponent(self, index) for index in range(3))


class VideoPlane:
    def __init__(self, frame, index, buffer):
        self.frame, self.index, self.buffer = frame, index, buffer

    def to_array(self):
        component = self.frame.format.components[self.index]
        return self.buffer.reshape(component.height, component.width)


class VideoFrame:
    def __init__(self, width, height, pts, buffers):
        self.format, self.pts = VideoFormat("yuv420p", width, height), pts
        self.planes = tuple(VideoPlane(self, index, buffer) for index, buffer in enumerate(buffers))


class InputContainer:
    def __init__(self, path):
        self.file = open(path, "rb")
        self.width, self.height, self.packets = pickle.load(self.file)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.file.close()

    def demux(self):
        for _ in range(self.packets):
            yield pickle.load(self.file)

    def decode(self):
        pts = 0
        for packet in self.demux():
            key = [np.frombuffer(zlib.decompress(plane), np.uint8) for plane in packet]
            for number in range(GROUP):
                yield VideoFrame(self.width, self.height, pts, [np.roll(plane, 64 * number) for plane in key])
                pts += 1


def open_input(path):
    return InputContainer(path)


def write(path, width, height, seconds, seed=0):
    """A clip of smooth scenes"""
    numbers, groups = np.random.default_rng(seed), -(-seconds * 25 // GROUP)
    with open(path, "wb") as file:
        pickle.dump((width, height, groups), file)
        for _ in range(groups):
            planes = []
            for scale in (1, 2, 2):
                coarse = numbers.integers(16, 235, (height // scale // 20, width // scale // 20), np.uint8)
                planes.append(zlib.compress(np.kron(coarse, np.ones((20, 20), np.uint8)).tobytes(), 1))
            pickle.dump(planes, file)
