//! How do closed parts of a table look? One Parquet file each: integers delta-coded, text by dictionary, all of it
//! compressed by zstd; rows grouped by process (or position), because a column is small when its neighbours are alike.

use crate::batch::Batch;
use crate::columns::Cells;
use crate::error::WriteError;
use crate::format::FORMAT;
use crate::table::{Column, Kind, Table};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::cmp::Ordering;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// A low level: higher ones save a few percent and cost megabytes while a part is written.
const ZSTD_LEVEL: i32 = 3;

/// What is in a part that was written: how much there would be to rewrite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: u64,
    /// Encoded, not compressed.
    pub(crate) bytes: u64,
}

/// Writes those rows of `batches` whose number `keep` accepts as part `number`; none where there are none, and
/// then no file. The file appears under its name only when it is complete.
pub(crate) fn write_part(
    dir: &Path,
    table: &'static Table,
    number: u32,
    batches: &[Batch],
    keep: impl Fn(u64) -> bool,
) -> Result<Option<Size>, WriteError> {
    let cells = |column: usize| -> Result<Cells, String> {
        let Column { kind, name } = table.columns[column];
        Ok(Cells::of_batches(kind, name, batches))
    };
    let path = dir.join(table.part_name(number));
    appear(&path, |unfinished| {
        let order = order(table, table.sorted_by, cells, |_, number| keep(number))?;
        if order.is_empty() {
            return Ok(None);
        }
        let mut file = TableFile::create(unfinished, table)?;
        file.group(&order, cells)?;
        file.finish().map(Some)
    })
}

/// Lets a file be written under another name, and gives it its own when it is complete; a file that `write` did not
/// make does not appear. Where that fails, nothing is left of it.
pub(crate) fn appear<T>(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<Option<T>, String>,
) -> Result<Option<T>, WriteError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".tmp");
    let unfinished = Path::new(&unfinished);
    let written = write(unfinished).and_then(|made| match made {
        Some(_) => std::fs::rename(unfinished, path).map(|()| made).map_err(|e| e.to_string()),
        None => Ok(None),
    });
    written.map_err(|why| {
        let _ = std::fs::remove_file(unfinished);
        WriteError::new("write", path, why)
    })
}

/// Indices of the rows that `keep` accepts (by place and number), sorted by these columns; rows that are alike in
/// them stay in the order in which they came, which is that of time.
pub(crate) fn order(
    table: &Table,
    by: &[usize],
    cells: impl Fn(usize) -> Result<Cells, String>,
    keep: impl Fn(usize, u64) -> bool,
) -> Result<Vec<usize>, String> {
    let Cells::U64(numbers) = cells(0)? else {
        return Err(format!("the first column of {} does not count", table.name));
    };
    let keep = |row: &usize| numbers[*row].is_some_and(|number| keep(*row, number));
    let mut order: Vec<usize> = (0..numbers.len()).filter(keep).collect();
    let keys = by.iter().map(|&key| cells(key)).collect::<Result<Vec<_>, _>>()?;
    let compare = |a: &usize, b: &usize| {
        keys.iter().fold(Ordering::Equal, |so_far, key| {
            so_far.then_with(|| match key {
                Cells::U64(cells) => cells[*a].cmp(&cells[*b]),
                Cells::I32(cells) => cells[*a].cmp(&cells[*b]),
                Cells::F64(cells) => cells[*a].partial_cmp(&cells[*b]).unwrap_or(Ordering::Equal),
                Cells::Bool(cells) => cells[*a].cmp(&cells[*b]),
                Cells::Text(cells) => cells[*a].cmp(&cells[*b]),
            })
        })
    };
    order.sort_by(compare);
    Ok(order)
}

/// A Parquet file of a table, being written.
pub(crate) struct TableFile {
    table: &'static Table,
    writer: SerializedFileWriter<BufWriter<File>>,
}

impl TableFile {
    pub(crate) fn create(path: &Path, table: &'static Table) -> Result<TableFile, String> {
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o600);
        let file = open.open(path).map_err(|e| e.to_string())?;
        let begin = || SerializedFileWriter::new(BufWriter::new(file), schema(table)?, properties(table)?);
        Ok(TableFile { table, writer: begin().map_err(|e| e.to_string())? })
    }

    /// Writes these rows as one row group, with one column in memory at a time: ullage's own footprint is promised.
    pub(crate) fn group(
        &mut self,
        order: &[usize],
        cells: impl Fn(usize) -> Result<Cells, String>,
    ) -> Result<(), String> {
        let mut group = self.writer.next_row_group().map_err(|e| e.to_string())?;
        for column in 0..self.table.columns.len() {
            let cells = cells(column)?;
            let next = group.next_column().map_err(|e| e.to_string())?;
            let next = next.ok_or_else(|| format!("no column {}", self.table.columns[column].name))?;
            write_column(next, cells, order).map_err(|e| e.to_string())?;
        }
        group.close().map(drop).map_err(|e| e.to_string())
    }

    pub(crate) fn finish(mut self) -> Result<Size, String> {
        let metadata = self.writer.finish().map_err(|e| e.to_string())?;
        let size = size(metadata.row_groups());
        self.writer.inner_mut().flush().map_err(|e| e.to_string())?;
        Ok(size)
    }
}

/// What these row groups hold.
pub(crate) fn size(groups: &[RowGroupMetaData]) -> Size {
    let sum = |figure: fn(&RowGroupMetaData) -> i64| {
        groups.iter().map(|group| u64::try_from(figure(group)).unwrap_or(0)).sum()
    };
    Size { rows: sum(RowGroupMetaData::num_rows), bytes: sum(RowGroupMetaData::total_byte_size) }
}

fn write_column(mut writer: SerializedColumnWriter<'_>, cells: Cells, order: &[usize]) -> ParquetResult<()> {
    fn split<T, P>(
        cells: &[Option<T>],
        order: &[usize],
        as_physical: impl Fn(&T) -> P,
    ) -> (Vec<P>, Vec<i16>) {
        let levels = order.iter().map(|&row| cells[row].is_some().into()).collect();
        (order.iter().filter_map(|&row| cells[row].as_ref().map(&as_physical)).collect(), levels)
    }
    match &cells {
        Cells::U64(cells) => {
            let (values, levels) = split(cells, order, |value| *value as i64);
            writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        Cells::I32(cells) => {
            let (values, levels) = split(cells, order, |value| *value);
            writer.typed::<Int32Type>().write_batch(&values, Some(&levels), None)?;
        }
        Cells::F64(cells) => {
            let (values, levels) = split(cells, order, |value| *value);
            writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        }
        Cells::Bool(cells) => {
            let (values, levels) = split(cells, order, |value| *value);
            writer.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
        }
        Cells::Text(cells) => {
            let (values, levels) = split(cells, order, |value| ByteArray::from(value.as_str()));
            writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
    }
    writer.close()
}

fn schema(table: &Table) -> ParquetResult<TypePtr> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Kind::I32 => (Physical::INT32, None),
            Kind::F64 => (Physical::DOUBLE, None),
            Kind::Bool => (Physical::BOOLEAN, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let builder = Type::primitive_type_builder(column.name, physical);
        builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<ParquetResult<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name).with_fields(fields).build()?))
}

/// Statistics and page indexes are left out: for files this small they are most of the bytes.
fn properties(table: &Table) -> ParquetResult<WriterPropertiesPtr> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("ullage ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(vec![
            KeyValue::new("ullage.format".to_owned(), FORMAT.to_string()),
            KeyValue::new("ullage.table".to_owned(), table.name.to_owned()),
        ]));
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        properties = match column.kind {
            Kind::U64 | Kind::I32 => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Kind::Bool | Kind::F64 => properties.set_column_dictionary_enabled(path, false),
            Kind::Text => properties.set_column_dictionary_enabled(path, column.name != "payload"),
        };
    }
    Ok(Arc::new(properties.build()))
}
