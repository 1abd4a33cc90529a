"""Which objects are pyarrow's, and what buffers of its pool do they hold?

Asked of pyarrow's own types only, and of a pyarrow that is there already. The surprise: a slice holds the buffers of
the whole table, and `nbytes` is of its own rows. A mapped file's buffers are no memory of the process: what is more
than the pool has handed out is not believed.
"""

import _ullage_common as common
import _ullage_kinds as types

NAMES = ("Table", "RecordBatch", "ChunkedArray", "Array")

_kinds, _of = (), None  # ids of the types, and of which module's names


def kinds():
    """Ids of pyarrow's types of tables and arrays; none while it is not there."""
    global _kinds, _of
    names = common.names("pyarrow.lib")
    if _of != len(names):
        bases = tuple([names[name] for name in NAMES if isinstance(names.get(name), type)])
        of_c = [one for one in names.values() if isinstance(one, type) and types.module_of(one) == "pyarrow.lib"]
        _kinds, _of = types.ids(*[one for one in of_c if bases and issubclass(one, bases)]), len(names)
    return _kinds


def data_of(value):
    """(place, bytes of the buffers, bytes of these that it shows); zeros where they are not of the pool."""
    try:
        size, shown = value.get_total_buffer_size(), value.nbytes
        pool = common.names("pyarrow.lib")["default_memory_pool"]()
        place = _place(value)
        return (place, size, min(size, shown)) if place and size <= pool.bytes_allocated() else (0, 0, 0)
    except Exception:
        return 0, 0, 0


def _place(value):
    """The address of the first buffer that is not empty: slices of one table have it in common."""
    number = getattr(value, "num_columns", None)
    columns = (value,) if number is None else (value.column(one) for one in range(number))
    for column in columns:
        for chunk in column.chunks if hasattr(column, "chunks") else (column,):
            for buffer in chunk.buffers():
                if buffer is not None and buffer.size:
                    return buffer.address
    return 0
