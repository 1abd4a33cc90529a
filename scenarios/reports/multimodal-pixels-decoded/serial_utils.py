"""Tensors as messages: a header, and the bytes of the tensor behind it"""

import pickle
import warnings

import torch

warnings.filterwarnings("ignore", message="The given buffer is not writable")
DTYPES = {"bfloat16": torch.bfloat16, "int64": torch.int64}


class Encoder:
    def send(self, connection, request_id, dtype, shape, data):
        connection.send_bytes(pickle.dumps((request_id, dtype, shape)))
        connection.send_bytes(data)


class Decoder:
    """Copies each tensor out of its message, so that the message can be dropped"""

    def __init__(self, pin_tensors=True):
        self.pin_tensors = pin_tensors and torch.cuda.is_available()

    def receive(self, connection):
        header = pickle.loads(connection.recv_bytes())
        if header is None:
            return None
        request_id, dtype, shape = header
        return request_id, self._decode_tensor(dtype, shape, connection.recv_bytes())

    def _decode_tensor(self, dtype, shape, data):
        tensor = torch.frombuffer(data, dtype=torch.uint8).view(DTYPES[dtype]).view(shape)
        return tensor.pin_memory() if self.pin_tensors else tensor.clone()
