"""What memory stands behind objects of libraries that tell neither Python nor its collector of it: Arrow's tables and
arrays, Pillow's images?

Asked of their own types only, which are of C, so that no code of the program runs. The surprise: a slice of a table
keeps the buffers of the whole, and a table that was read from a mapped file holds pages of that file.
"""

import posix

import _ullage_common as common
import _ullage_kinds as types
from _ullage_common import monotonic

MOST_MAPS = 1 << 20  # bytes of /proc/self/maps: of a process with more of them nothing is said
KNOWN_S = 1.0  # for which the mappings and the types are taken for what they were
MOST_CHUNKS = 64  # until one has a buffer
_READS = "get_total_buffer_size", "nbytes"
_BITS = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}  # bytes of a pixel; of others 4

_known, _mapped, _read_at = {}, (), -KNOWN_S


def memory_of(value, kind):
    """(place, bytes, those of them that it shows) of an object of such a type; None of others, and of what lies in a
    mapped file."""
    if monotonic() > _read_at + KNOWN_S:
        _learn()
    try:
        read = _known.get(id(kind))
        if read is not None:
            found = read(value, kind)
            return None if found is None or any([start <= found[0] < end for start, end in _mapped]) else found
        return _of_image(value, kind) if types.qualified_name(kind) == "ImagingCore" else None
    except Exception:
        return None


def _learn():
    """Which types these are, and where files are mapped."""
    global _known, _mapped, _read_at
    _read_at = monotonic()
    names = common.names("pyarrow.lib")
    array, known = names.get("Array"), {}
    for name, one in list(names.items()):
        if issubclass(type(one), type) and array is not None:
            if name in ("Table", "RecordBatch", "ChunkedArray") or any([base is array for base in types.mro(one)]):
                known[id(one)] = _of_arrow
    _known, _mapped = known, ()
    if known:
        mapped = _files()
        _known, _mapped = (known, mapped) if mapped is not None else ({}, ())


def _files():
    fd = posix.open("/proc/self/maps", posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        text = b""
        while len(text) < MOST_MAPS:
            more = posix.read(fd, 1 << 16)
            if not more:
                break
            text += more
        else:
            return None
    finally:
        posix.close(fd)
    found = []
    for line in text.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[4] != b"0" and b".so" not in fields[5]:
            start, _, end = fields[0].partition(b"-")
            found.append((int(start, 16), int(end, 16)))
    return found


def _of_arrow(value, kind):
    size, shown = [types.of_class(kind, name) for name in _READS]
    if type(shown) is not types.GetSetDescriptorType:
        return None
    first = value
    while types.of_class(type(first), "buffers") is None:
        # A table's first column, of whose chunks the first that has a buffer.
        if types.of_class(type(first), "chunk") is None:
            if not first.num_columns:
                return None
            first = first.column(0)
        else:
            chunks = [first.chunk(number) for number in range(min(first.num_chunks, MOST_CHUNKS))]
            first = next((chunk for chunk in chunks if len(chunk)), None)
            if first is None:
                return None
    places = [buffer.address for buffer in first.buffers() if buffer is not None]
    return (places[-1], size(value), shown.__get__(value)) if places else None


def _of_image(value, kind):
    size, mode = types.of_class(kind, "size"), types.of_class(kind, "mode")
    if type(size) is not types.GetSetDescriptorType or type(mode) is not types.GetSetDescriptorType:
        return None
    (wide, high), mode = size.__get__(value), mode.__get__(value)
    pixels = wide * high * _BITS.get(mode, 4)
    return id(value), pixels, pixels
