"""What memory stands behind objects of libraries that tell neither Python nor its collector of it: Arrow's tables and
arrays, Pillow's images?

Asked of their own types only, which are of C, so that no code of the program runs: a program with an extension type of
Arrow's is asked nothing, since Arrow would call that type's class. The surprise: a slice of a table keeps the buffers
of the whole, and a table that was read from a mapped file holds pages of that file.
"""

import posix

import _ullage_common as common
import _ullage_kinds as types
from _ullage_common import monotonic

MOST_MAPS = 1 << 20  # bytes of /proc/self/maps: of a process with more of them nothing is said
KNOWN_S, MOST_READ = 1.0, 8  # for which the types are taken for what they were; readings of the mappings meanwhile
MOST_BUFFERS = 300  # of a table: to ask for more takes too long
_BITS = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}  # bytes of a pixel; of others 4

_known, _chunked, _ranges, _learned_at, _read = {}, 0, [], -KNOWN_S, 0


def memory_of(value, kind):
    """(place -> bytes, those of all of them that it shows) of an object of such a type; None of others, and of what
    lies in a mapped file."""
    try:
        if monotonic() > _learned_at + KNOWN_S:
            _learn()
        read = _known.get(id(kind))
        if read is not None:
            return read(value, kind)
        return _of_image(value, kind) if types.qualified_name(kind) == "ImagingCore" else None
    except Exception:
        return None


def _learn():
    """Which types these are."""
    global _known, _chunked, _ranges, _learned_at, _read
    _known, _ranges, _learned_at, _read = {}, [], monotonic(), 0
    names, known = common.names("pyarrow.lib"), {}
    array, extension = names.get("Array"), names.get("ExtensionType")
    if not all([issubclass(type(one), type) and types.module_of(one) == "pyarrow.lib" for one in (array, extension)]):
        return
    kinds = [extension]
    for kind in kinds:
        if types.module_of(kind) != "pyarrow.lib":
            return
        kinds += type.__subclasses__(kind)
    for name, one in list(names.items()):
        if issubclass(type(one), type) and types.module_of(one) == "pyarrow.lib":
            if name == "Table" or name == "RecordBatch":
                known[id(one)] = _of_table
            elif name == "ChunkedArray":
                known[id(one)], _chunked = _of_one, id(one)
            elif any([base is array for base in types.mro(one)]):
                known[id(one)] = _of_one
    _known = known


def _is_own(place):
    """It lies in no mapped file."""
    global _ranges, _read
    found = _range_of(place)
    # What was mapped, or allocated, since the last reading.
    if found is None and _read < MOST_READ:
        _read, _ranges = _read + 1, []
        _ranges = _mapped()
        _read = _read if _ranges else MOST_READ
        found = _range_of(place)
    return found is not None and not found[2]


def _range_of(place):
    low, high = 0, len(_ranges)
    while low < high:
        middle = (low + high) // 2
        if _ranges[middle][1] <= place:
            low = middle + 1
        else:
            high = middle
    return _ranges[low] if low < len(_ranges) and _ranges[low][0] <= place else None


def _mapped():
    """(start, end, whether it is of a file), by address; nothing of a process with too many."""
    fd = posix.open("/proc/self/maps", posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        text = b""
        while len(text) < MOST_MAPS:
            more = posix.read(fd, 1 << 16)
            if not more:
                break
            text += more
        else:
            return []
    finally:
        posix.close(fd)
    found = []
    for line in text.splitlines():
        addresses, _, _, _, inode = line.split(None, 5)[:5]
        start, _, end = addresses.partition(b"-")
        found.append((int(start, 16), int(end, 16), inode != b"0"))
    return found


def _of_table(value, kind):
    number = value.num_columns
    return _weighed(value, [value.column(place) for place in range(number)]) if number <= MOST_BUFFERS else None


def _of_one(value, kind):
    return _weighed(value, [value])


def _weighed(value, columns):
    """By their buffers, each of which others may share: a column is added to a table without a copy of the table's.
    Nothing is said of what has very many of them."""
    places, all_own, asked = {}, True, 0
    for column in columns:
        chunks = [column]
        if id(type(column)) == _chunked:
            if column.num_chunks > MOST_BUFFERS:
                return None
            chunks = [column.chunk(place) for place in range(column.num_chunks)]
        for chunk in chunks:
            buffers = chunk.buffers()
            if chunk.type.num_fields:  # a dictionary inside is not among them
                all_own = False
            elif hasattr(chunk, "dictionary"):
                buffers += chunk.dictionary.buffers()
            asked += len(buffers)
            if asked > MOST_BUFFERS:
                return None
            for buffer in buffers:
                if buffer is not None and buffer.size:
                    if _is_own(buffer.address):
                        places[buffer.address] = buffer.size
                    else:
                        all_own = False
    size = sum(places.values())
    # What it shows is asked for where that reads nothing of a mapped file.
    return (places, min(size, value.nbytes) if all_own else size) if places else None


def _of_image(value, kind):
    size, mode, readonly = [types.of_class(kind, name) for name in ("size", "mode", "readonly")]
    if any([type(one) is not types.GetSetDescriptorType for one in (size, mode)]):
        return None
    # It shows a mapped file, or another's bytes.
    if type(readonly) is types.GetSetDescriptorType and readonly.__get__(value):
        return None
    (wide, high), mode = size.__get__(value), mode.__get__(value)
    pixels = wide * high * _BITS.get(mode, 4)
    return ({id(value): pixels}, pixels) if pixels else None
