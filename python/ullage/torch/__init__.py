"""torch's types in ullage's messages: tensors and storages of the CPU, by the bytes that they reach.

The only part of the package that imports torch. Read torch/multiprocessing/reductions.py and
torch/utils/data/_utils/collate.py beside it. The surprises: torch's own reducer drops the conj and neg bits;
torch.frombuffer keeps the exporter of its buffer in the storage's deleter, and that is what ends a lease.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.multiprocessing import reductions
from torch.utils import hooks

from ullage import _native, _reducers
from ullage._arena import retire
from ullage._errors import Error
from ullage._native import Encoder

_NAMES: dict[torch.dtype, str] = {
    value: name for name, value in sorted(vars(torch).items()) if isinstance(value, torch.dtype)
}
_DTYPES = {name: value for name, value in vars(torch).items() if isinstance(value, torch.dtype)}
_ITEMSIZE = {dtype: dtype.itemsize for dtype in _NAMES}
_has_names = getattr(torch.Tensor, "has_names", None)  # gone in torch 2.13
_PLAIN = {
    dtype: (name, _ITEMSIZE[dtype]) for dtype, name in _NAMES.items() if not (dtype.is_complex or name.startswith("q"))
}
_MOVED = ("_share_fd_cpu_", "_share_filename_cpu_")

_CONJ, _NEG, _REQUIRES_GRAD, _PARAMETER = 1, 2, 4, 8


def _reduce_tensor(encoder: Encoder, tensor: torch.Tensor) -> Any:
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_nested:
        return reductions.reduce_tensor(tensor)
    if tensor.is_quantized:
        return torch.Tensor.__reduce_ex__(tensor, 5)
    requires_grad = tensor.requires_grad
    storage = tensor.untyped_storage()
    if (requires_grad and not tensor.is_leaf) or storage.is_shared() or (_has_names and _has_names(tensor)):
        # Its own refusals and warnings; and what the user shared stays shared.
        return reductions.reduce_tensor(tensor)
    if tensor._backward_hooks:
        hooks.warn_if_has_hooks(tensor)
    dtype = tensor.dtype
    sizes, stride, offset = tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset())
    reached = _storage_number(encoder, storage, dtype, sizes, stride, offset)
    if reached is None:
        return reductions.reduce_tensor(tensor)
    flags = (_CONJ if tensor.is_conj() else 0) | (_NEG if tensor.is_neg() else 0)
    flags |= _REQUIRES_GRAD if requires_grad else 0
    flags |= _PARAMETER if type(tensor) is torch.nn.Parameter else 0
    args = (reached, _NAMES[dtype], sizes, stride, offset, flags)
    attributes = vars(tensor)
    return (_rebuild, (*args, attributes) if attributes else args)


def _storage_number(
    encoder: Encoder,
    storage: torch.UntypedStorage,
    dtype: torch.dtype,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
) -> int | None:
    """None where the storage has fewer bytes than the tensor reaches: they were freed, as FSDP does."""
    item = _ITEMSIZE[dtype]
    if 0 in shape:
        first = last = 0
    else:
        first = offset * item
        last = first + item
        for size, step in zip(shape, stride):
            last += (size - 1) * step * item
    nbytes = storage.nbytes()
    if last > nbytes:
        return None
    return encoder.storage(storage._cdata, storage, storage.data_ptr(), nbytes, first, last)


def _reduce_storage(encoder: Encoder, storage: torch.UntypedStorage) -> Any:
    if storage.device.type != "cpu":
        return NotImplemented
    nbytes = storage.nbytes()
    if storage.is_shared():
        encoder.pass_by(nbytes)
        return NotImplemented
    number = encoder.storage(storage._cdata, storage, storage.data_ptr(), nbytes, 0, nbytes)
    return (_rebuild_storage, (number,))


def _received(number: int) -> tuple[torch.UntypedStorage, int]:
    """The storage of this number in the message that is being read, and which byte of the sender's it begins with."""
    message = _native.reading()
    part, first = message.part(number)
    storage = message.shared.get(number)
    if storage is None:
        if len(part):
            storage = torch.frombuffer(part, dtype=torch.uint8).untyped_storage()
        else:
            storage = torch.UntypedStorage(0)
        message.shared[number] = storage
    return storage, first


def _rebuild_storage(number: int) -> torch.UntypedStorage:
    return _received(number)[0]


def _rebuild(
    number: int,
    dtype_name: str,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    flags: int,
    attributes: dict[str, Any] | None = None,
) -> torch.Tensor:
    dtype = _DTYPES[dtype_name]
    storage, first = _received(number)
    tensor = torch.empty(0, dtype=dtype)
    if 0 in shape:
        tensor = torch.empty_strided(shape, stride, dtype=dtype)
    else:
        tensor.set_(storage, offset - first // _ITEMSIZE[dtype], shape, stride)  # type: ignore[call-overload]
    if flags:
        if flags & _CONJ:
            tensor = torch._conj(tensor)
        if flags & _NEG:
            tensor = torch._neg_view(tensor)
        if flags & _PARAMETER:
            tensor = torch.nn.Parameter(tensor, requires_grad=bool(flags & _REQUIRES_GRAD))
        elif flags & _REQUIRES_GRAD:
            tensor.requires_grad_(True)
    if attributes:
        vars(tensor).update(attributes)
    return tensor


def _retire_what_is_moved() -> None:
    """torch moves a storage into a segment of its own under the views that others have of the old bytes."""

    def watch(name: str) -> None:
        original = getattr(torch.UntypedStorage, name)

        def moved(self: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
            if self.device.type == "cpu" and not self.is_shared():
                if _reducers.forbids_torch():
                    raise Error(
                        f"a tensor of the CPU ({self.nbytes()} bytes) would go through torch's own shared memory, and "
                        "ULLAGE_STRICT=1 makes that an error: please report the type of what was put"
                    )
                retire(self.data_ptr())
            return original(self, *args, **kwargs)

        moved.__name__ = name
        setattr(torch.UntypedStorage, name, moved)

    for name in _MOVED:
        watch(name)


def collate_in(arena: Any) -> None:
    """From now on default_collate, and all who do as it does, write into the arena. For loader workers."""
    original = torch.UntypedStorage._new_shared.__func__  # type: ignore[attr-defined]

    def _new_shared(cls: Any, size: int, *, device: Any = "cpu") -> torch.UntypedStorage:
        if torch.device(device).type != "cpu" or size == 0:
            result: torch.UntypedStorage = original(cls, size, device=device)
            return result
        return torch.frombuffer(arena.alloc(size), dtype=torch.uint8).untyped_storage()

    torch.UntypedStorage._new_shared = classmethod(_new_shared)  # type: ignore[method-assign,assignment]
    _collate_tensors_in(arena)


def _collate_tensors_in(arena: Any) -> None:
    """torch's way to a shared output goes through four Python objects; this one does the same in one."""
    from torch.utils.data._utils import collate

    original = collate.collate_tensor_fn

    def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
        stacked = _native.stack(arena, batch)
        return original(batch, collate_fn_map=collate_fn_map) if stacked is None else stacked

    if collate.default_collate_fn_map.get(torch.Tensor) is original:
        collate.default_collate_fn_map[torch.Tensor] = collate_tensor_fn


def worker_number() -> int | None:
    """Number of the loader worker that this process is; None elsewhere."""
    data = sys.modules.get("torch.utils.data")
    info = None if data is None else data.get_worker_info()
    return None if info is None else info.id


_native.use_torch(torch.Tensor, _rebuild)
_retire_what_is_moved()
# Last: they are the sign that this module is whole.
_reducers.REDUCERS.update(
    {
        torch.Tensor: _reduce_tensor,
        torch.nn.Parameter: _reduce_tensor,
        torch.UntypedStorage: _reduce_storage,
    }
)
