"""The C interface of the simulator, over ctypes: a world is a block of patches that belongs to the native side"""

import ctypes

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
_libc.memset.restype = ctypes.c_void_p
_libc.free.argtypes = [ctypes.c_void_p]
_libc.free.restype = None

ON_STEP = ctypes.CFUNCTYPE(None, ctypes.c_int)


class World(ctypes.Structure):
    _fields_ = [("patches", ctypes.c_void_p), ("size", ctypes.c_size_t), ("on_step", ON_STEP), ("time", ctypes.c_int)]


def new(size, on_step):
    """A handle; the native side holds a reference to the callback as long as the world exists"""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(on_step))
    patches = _libc.malloc(size)
    if not patches:
        raise MemoryError("the world's patches")
    _libc.memset(patches, 0, size)
    return World(patches, size, on_step, 0)


def step(world):
    world.time += 1
    world.on_step(world.time)


def delete(world, on_step):
    _libc.free(world.patches)
    world.patches = None
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(on_step))
