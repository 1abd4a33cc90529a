"""Which objects are torch's tensors, and in what memory do they lie?

Asked of torch's own types only, and of a torch that is there already.
"""

import _ullage_common as common


def begins():
    """A torch that is half there gives storages no type to have."""
    return getattr(common.names("torch").get("__spec__"), "_initializing", False)


def kinds():
    found = common.names("torch").get("Tensor"), common.names("torch.nn").get("Parameter")
    return tuple([kind for kind in found if kind is not None])


def storage_of(tensor, shared=False):
    """(place, bytes) of memory of the CPU; 0 where it lies elsewhere. `shared`: also of what lies in shared memory."""
    try:
        if tensor.device.type != "cpu" or not shared and tensor.is_shared():
            return 0, 0
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    except Exception:
        return 0, 0


def shown_of(tensor, size):
    """Bytes of its storage that it shows, of `size` in all."""
    try:
        return min(size, tensor.numel() * tensor.element_size())
    except Exception:
        return size


def gradient_of(tensor):
    """Of a parameter, which holds it where no collector sees it."""
    try:
        return tensor.grad if type(tensor) is common.names("torch.nn").get("Parameter") else None
    except Exception:
        return None
