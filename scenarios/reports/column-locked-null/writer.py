"""Writes tables into a file of record batches, all with the types of the first one"""

import pyarrow as pa


class DatasetGenerationError(Exception):
    pass


def array_cast(array, target):
    if pa.types.is_null(target) and not pa.types.is_null(array.type):
        raise TypeError(f"Couldn't cast array of type {array.type} to {target}")
    return array.cast(target)


def table_cast(table, schema):
    columns = [array_cast(table.column(field.name), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


class ArrowWriter:
    def __init__(self, path):
        self.sink = pa.OSFile(path, "wb")
        self.schema = None
        self.writer = None
        self.rows = 0

    def write_table(self, table):
        if self.writer is None:
            self.schema = table.schema
            self.writer = pa.ipc.new_stream(self.sink, self.schema)
        self.writer.write_table(table_cast(table.combine_chunks(), self.schema))
        self.rows += table.num_rows

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.sink.close()
