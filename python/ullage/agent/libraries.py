"""What memory stands behind objects of libraries that tell neither Python nor its collector of it: Arrow's tables and
arrays, Pillow's images?

Asked of their own types only, which are of C, so that no code of the program runs: a program with an extension type of
Arrow's is asked nothing, since Arrow would call that type's class. The surprise: a slice of a table keeps the buffers
of the whole, and a table that was read from a mapped file holds pages of that file.
"""

import posix
from _collections import deque

import _ullage_common as common
import _ullage_kinds as types
from _ullage_common import monotonic

MOST_MAPS = 1 << 20  # bytes of /proc/self/maps: of a process with more of them nothing is said
KNOWN_S, MOST_READ = 1.0, 8  # for which the types are taken for what they were; readings of the mappings meanwhile
MOST_COLUMNS, MOST_CHUNKS = 16, 16  # that are asked for their buffers
MOST_PIECES = 500  # of a table: to add up more takes too long
_BITS = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}  # bytes of a pixel; of others 4

_LISTS = types.ids(list, tuple, deque)

_known, _ranges, _learned_at, _read = {}, [], -KNOWN_S, 0


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


class Tables:
    """Of what lies in an element, the places behind objects of libraries."""

    def __init__(self):
        self._places = {}  # id of an object -> places

    def add(self, part, behind, storages, shown):
        places, visible = behind
        whole = sum(places.values())
        for place, size in places.items():
            storages[place] = max(size, storages.get(place, 0))
            shown[place] = min(size, shown.get(place, 0) + visible * size // whole)
        self._places[id(part)] = list(places)

    def several(self):
        return len(self._places) > 1

    def stand_for_all(self, element, parts, left, storages, shown):
        """Of a long list few are gone into: `parts`, but for those of `left`. The others lie in as many other places,
        for their number, as these do."""
        if id(type(element)) not in _LISTS:
            return
        number = len(element)
        if number > len(parts):  # the second half of them are the last ones, which stand for nothing else
            parts = parts[: len(parts) // 2]
            number -= len(parts)
        left = {id(part) for part, _ in left}
        gone = [id(part) for part in parts if id(part) not in left]
        met = [place for one in gone for place in self._places.get(one, ())]
        if len(met) < 2 or number <= len(gone):
            return
        some, others = {*met}, number / len(gone)
        times = (1 + (len(some) - 1) * (len(met) * others - 1) / (len(met) - 1)) / len(some)
        for place in some:
            storages[place] = int(times * storages[place])
            shown[place] = min(storages[place], int(others * shown[place]))


def _learn():
    """Which types these are."""
    global _known, _ranges, _learned_at, _read
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
                known[id(one)] = _of_chunks
            elif any([base is array for base in types.mro(one)]):
                known[id(one)] = _of_array
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
    columns = [value.column(place) for place in range(min(number, MOST_COLUMNS))]
    if number * max([getattr(column, "num_chunks", 1) for column in columns], default=0) > MOST_PIECES:
        return None
    return _weighed(value, columns, number == len(columns))


def _of_chunks(value, kind):
    return _weighed(value, [value], True) if value.num_chunks <= MOST_PIECES else None


def _of_array(value, kind):
    return _weighed(value, [value], True)


def _weighed(value, columns, whole):
    """By their buffers, each of which others may share: a column is added to a table without a copy of the table's. Of
    those that are not asked for, what they have weighs on the first."""
    places, all_own = {}, True
    for column in columns:
        chunks = [column]
        if _known.get(id(type(column))) is _of_chunks:
            chunks = [column.chunk(place) for place in range(min(column.num_chunks, MOST_CHUNKS))]
            whole = whole and column.num_chunks == len(chunks)
        for chunk in chunks:
            buffers = chunk.buffers()
            if hasattr(chunk, "dictionary"):
                buffers += chunk.dictionary.buffers()
            for buffer in buffers:
                if buffer is not None and buffer.size:
                    if _is_own(buffer.address):
                        places[buffer.address] = buffer.size
                    else:
                        all_own = False
    if not places:
        return None
    # Either of these would read a mapped file.
    if all_own and not whole:
        rest = value.get_total_buffer_size() - sum(places.values())
        places[next(iter(places))] += max(0, rest)
    size = sum(places.values())
    return places, min(size, value.nbytes) if all_own else size


def _of_image(value, kind):
    size, mode, readonly = [types.of_class(kind, name) for name in ("size", "mode", "readonly")]
    if any([type(one) is not types.GetSetDescriptorType for one in (size, mode)]):
        return None
    # It shows a mapped file, or another's bytes.
    if type(readonly) is types.GetSetDescriptorType and readonly.__get__(value):
        return None
    (wide, high), mode = size.__get__(value), mode.__get__(value)
    pixels = wide * high * _BITS.get(mode, 4)
    return {id(value): pixels}, pixels
