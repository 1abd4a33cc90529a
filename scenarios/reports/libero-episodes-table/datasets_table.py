"""Tables of columns in chunks; a column of images is one buffer with the place of each image"""

import os

import numpy as np


class Dataset:
    def __init__(self, chunks):
        self.chunks = chunks

    @classmethod
    def from_dict(cls, columns):
        return cls([columns])

    def __len__(self):
        return sum(len(next(iter(chunk.values()))) for chunk in self.chunks)

    def to_file(self, path):
        with open(path, "wb") as file:
            for chunk in self.chunks:
                for column in chunk.values():
                    file.write(column.data if isinstance(column, ImageColumn) else np.asarray(column).tobytes())


class ImageColumn:
    def __init__(self, paths):
        ends = np.cumsum([os.path.getsize(path) for path in paths])
        self.offsets = np.concatenate([[0], ends])
        self.data = bytearray(int(ends[-1]))
        for number, path in enumerate(paths):
            with open(path, "rb") as file:
                file.readinto(memoryview(self.data)[self.offsets[number] : self.offsets[number + 1]])

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, number):
        return bytes(self.data[self.offsets[number] : self.offsets[number + 1]])


def embed_images(dataset, image_keys):
    """The same table, with the images themselves instead of their paths"""
    return Dataset(
        [
            {key: ImageColumn(column) if key in image_keys else column for key, column in chunk.items()}
            for chunk in dataset.chunks
        ]
    )


def concatenate_datasets(datasets):
    return Dataset([chunk for dataset in datasets for chunk in dataset.chunks])
