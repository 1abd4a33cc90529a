"""A dataset that opens every archive in its constructor and holds them: the limit of open files is met."""

import os
import shutil
import tempfile

import numpy

folder = tempfile.mkdtemp(prefix="embeddings-")
number = 1200
for n in range(number):
    numpy.savez(os.path.join(folder, f"Tr_{n:09}.npz"), img=numpy.zeros((8, 8), "float32"))


class NpzDataset:
    def __init__(self, root):
        self.files = sorted(os.listdir(root))
        self.data = []
        for name in self.files:
            self.data.append(numpy.load(os.path.join(root, name)))


try:
    print(len(NpzDataset(folder).data))
finally:
    shutil.rmtree(folder, ignore_errors=True)
