//! What does a closed part hold? The Parquet library checks much, not everything: hostile bytes can still make it
//! panic, so it runs behind `catch_unwind`, and no more rows are taken than a part of ours can have.

use crate::columns::{Cells, Columns};
use crate::part::{size, Size};
use crate::table::Table;
use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A part is smaller than the tails it was made of; bytes of the file.
pub(crate) const MOST_PART_BYTES: u64 = 64 << 20;
/// A part of ours has some 60,000 rows (several merged), or half of this (`merge`), or those of a single huge sample.
const MOST_ROWS: usize = 1 << 18;
/// What a part of ours is decompressed to at most, bytes: two tails of 5 MB, or a single huge sample.
const MOST_BYTES: i64 = 256 << 20;

const BROKEN: &str = "the Parquet library could not take it";

/// Whether the file's footer can be read, which is what a cut or half-written file lacks.
pub(crate) fn check_part(bytes: Vec<u8>) -> Result<(), String> {
    guarded(|| open(Bytes::from(bytes)).map(drop))
}

/// All rows of a part.
pub(crate) fn read_part(table: &'static Table, bytes: Vec<u8>) -> Result<Columns, String> {
    let part = Part::open(table, bytes)?;
    let mut columns = Columns { table, cells: Vec::with_capacity(table.columns.len()), rows: 0 };
    for column in 0..table.columns.len() {
        let mut cells = Cells::nulls(table.columns[column].kind, 0);
        part.append(column, &mut cells)?;
        columns.cells.push(cells);
    }
    columns.rows = part.rows();
    Ok(columns)
}

/// The largest number of a part's rows, of which one column is read; none where it has no rows.
pub(crate) fn last_number(table: &'static Table, bytes: Vec<u8>) -> Result<Option<u64>, String> {
    let mut cells = Cells::nulls(table.columns[0].kind, 0);
    Part::open(table, bytes)?.append(0, &mut cells)?;
    match cells {
        Cells::U64(numbers) => Ok(numbers.into_iter().flatten().max()),
        _ => Err("its first column does not count".to_owned()),
    }
}

/// A part, open to be read a column at a time.
pub(crate) struct Part {
    table: &'static Table,
    reader: SerializedFileReader<Bytes>,
}

impl Part {
    pub(crate) fn open(table: &'static Table, bytes: Vec<u8>) -> Result<Part, String> {
        guarded(|| Ok(Part { table, reader: open(Bytes::from(bytes))? }))
    }

    pub(crate) fn size(&self) -> Size {
        size(self.reader.metadata().row_groups())
    }

    fn rows(&self) -> usize {
        self.reader.metadata().row_groups().iter().map(|group| group.num_rows() as usize).sum()
    }

    /// Appends the cells of one column; all null where the file has no such column.
    pub(crate) fn append(&self, column: usize, cells: &mut Cells) -> Result<(), String> {
        let name = self.table.columns[column].name;
        guarded(|| {
            for group in 0..self.reader.num_row_groups() {
                let group = self.reader.get_row_group(group).map_err(|e| e.to_string())?;
                let rows = group.metadata().num_rows() as usize;
                read_column(group.as_ref(), name, rows, cells)?;
            }
            Ok(())
        })
        .map_err(|e| format!("column {name}: {e}"))
    }
}

fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(BROKEN.to_owned()))
}

fn open(bytes: Bytes) -> Result<SerializedFileReader<Bytes>, String> {
    let length = bytes.len() as i64;
    let reader = SerializedFileReader::new(bytes).map_err(|e| e.to_string())?;
    let metadata = reader.metadata();
    let rows = |g: &RowGroupMetaData| usize::try_from(g.num_rows()).ok();
    let all = metadata.row_groups().iter().try_fold(0usize, |sum, group| sum.checked_add(rows(group)?));
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let bytes = columns.map(|column| column.uncompressed_size()).fold(0i64, i64::saturating_add);
    if all.is_none_or(|all| all > MOST_ROWS) || !(0..=MOST_BYTES).contains(&bytes) {
        return Err("it claims more rows than a part can have".to_owned());
    }
    // The library asserts this later; a panic's message is nothing for a user.
    let mut columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let holds = |column: &ColumnChunkMetaData| {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        start >= 0 && column.compressed_size() >= 0 && end.is_some_and(|end| end <= length)
    };
    if !columns.all(holds) {
        return Err("its columns lie outside the file".to_owned());
    }
    Ok(reader)
}

fn read_column(group: &dyn RowGroupReader, name: &str, rows: usize, cells: &mut Cells) -> Result<(), String> {
    let leaves = group.metadata().columns().iter();
    let index = leaves.map(|leaf| leaf.column_descr()).position(|leaf| {
        let flat = leaf.max_rep_level() == 0 && leaf.max_def_level() == 1;
        leaf.path().parts() == [name] && leaf.physical_type() == physical(cells) && flat
    });
    let Some(index) = index else {
        // A column that this version has and the file has not: all null.
        cells.extend_nulls(rows);
        return Ok(());
    };
    match cells {
        Cells::U64(out) => read_typed::<Int64Type, _>(group, index, rows, out, |value| Some(value as u64)),
        Cells::I32(out) => read_typed::<Int32Type, _>(group, index, rows, out, Some),
        Cells::F64(out) => read_typed::<DoubleType, _>(group, index, rows, out, Some),
        Cells::Bool(out) => read_typed::<BoolType, _>(group, index, rows, out, Some),
        Cells::Text(out) => read_typed::<ByteArrayType, _>(group, index, rows, out, |text| {
            String::from_utf8(text.data().to_vec()).ok()
        }),
    }
}

fn physical(cells: &Cells) -> Physical {
    match cells {
        Cells::U64(_) => Physical::INT64,
        Cells::I32(_) => Physical::INT32,
        Cells::F64(_) => Physical::DOUBLE,
        Cells::Bool(_) => Physical::BOOLEAN,
        Cells::Text(_) => Physical::BYTE_ARRAY,
    }
}

fn read_typed<T: DataType, V>(
    group: &dyn RowGroupReader,
    index: usize,
    rows: usize,
    out: &mut Vec<Option<V>>,
    as_value: impl Fn(T::T) -> Option<V>,
) -> Result<(), String> {
    let reader = group.get_column_reader(index).map_err(|e| e.to_string())?;
    let mut reader = get_typed_column_reader::<T>(reader);
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (records, _, _) = reader
            .read_records(rows - read, Some(&mut levels), None, &mut values)
            .map_err(|e| e.to_string())?;
        if records == 0 {
            return Err(format!("it ends after {read} of {rows} rows"));
        }
        read += records;
    }
    let mut values = values.into_iter();
    let cell = |level: i16| match level {
        0 => Ok(None),
        _ => values.next().and_then(&as_value).map(Some).ok_or_else(|| "a value is damaged".to_owned()),
    };
    let cells = levels.into_iter().map(cell).collect::<Result<Vec<_>, _>>()?;
    out.extend(cells);
    Ok(())
}
