"""Reads the parts of a Hugging Face checkpoint that a rank needs"""

import json
import struct

import torch

DTYPES = {"BF16": torch.bfloat16, "F32": torch.float32}


class HuggingFaceStorageReader:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as stream:
            length = struct.unpack("<Q", stream.read(8))[0]
            self.items = json.loads(stream.read(length))
        self.start = 8 + length

    def read_data(self, requests):
        """Fills each target with its part of the stored tensor: `requests` has name, target, and offset in rows"""
        with open(self.path, "rb") as stream:
            for name, target, row in requests:
                item = self.items[name]
                begin, end = item["data_offsets"]
                stream.seek(self.start + begin)
                tensor_bytes = bytearray(stream.read(end - begin))
                tensor = torch.frombuffer(tensor_bytes, dtype=DTYPES[item["dtype"]]).reshape(item["shape"])
                tensor = tensor.narrow(0, row, target.shape[0])
                target.copy_(tensor)
