"""Tensors of `ullage.share`: what they are made of when they are packed, and tensors over the shared pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ullage._pages import Shared

_DTYPES = {name: value for name, value in vars(torch).items() if isinstance(value, torch.dtype)}
_NAMES = {value: name for name, value in sorted(_DTYPES.items())}


def parts(tensor: Any) -> Any:
    """(what keeps the bytes, name of the dtype, item size, shape, address, bytes) of a tensor; a str that says why it
    cannot be shared; None for anything but a tensor. A gradient is not shared."""
    if not isinstance(tensor, torch.Tensor):
        return None
    if type(tensor) is not torch.Tensor:
        return f"it is a {type(tensor).__qualname__}; use .detach() or .as_subclass(torch.Tensor) of it"
    if tensor.device.type != "cpu":
        return f"it is a tensor on {tensor.device}; use .cpu() of it"
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        return f"it is a tensor of another layout ({tensor.layout}, {tensor.dtype}); use its dense parts"
    if vars(tensor):
        return "it is a tensor with attributes; use a dict of the tensor and them"
    kept = tensor.detach().resolve_conj().resolve_neg().contiguous()
    item = kept.dtype.itemsize
    return kept, _NAMES[kept.dtype], item, list(kept.shape), kept.data_ptr(), kept.numel() * item


def over(piece: Any, at: int, name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor whose bytes are at this place of a buffer."""
    dtype, count = _DTYPES[name], math.prod(shape)
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(piece, dtype=dtype, count=count, offset=at).reshape(shape)


class SharedTensor(torch.Tensor):
    """A tensor whose bytes all processes have in common; a write to it stays in its process.

    What is made from it is torch's own tensor, and pickled as such.
    """

    _reduced: Callable[[], Any]
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def over(cls, tensor: torch.Tensor, reduced: Callable[[], Any]) -> SharedTensor:
        """`tensor`, whose bytes lie in shared pages; `reduced` gives what it is pickled as."""
        shared = tensor.as_subclass(cls)
        shared._reduced = reduced
        return shared

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._reduced()

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        return self.to_python()

    def to_python(self) -> torch.Tensor:
        """A copy as a plain tensor."""
        return self.detach().clone().as_subclass(torch.Tensor)


Shared.register(SharedTensor)
