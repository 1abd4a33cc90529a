//! How do closed parts of a table look? One Parquet file each: integers delta-coded, text by dictionary, all of it
//! compressed by zstd; rows grouped by process (or path), because a column is small when its neighbours are alike.

use crate::columns::Cells;
use crate::error::WriteError;
use crate::table::{Column, Kind, Table};
use arrow_array::RecordBatch;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::cmp::Ordering;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// A low level: higher ones save a few percent and cost megabytes while a part is written.
const ZSTD_LEVEL: i32 = 3;

/// Writes those rows of `batches` whose number `keep` accepts as part `number`; false where there are none, and
/// then no file. The file appears under its name only when it is complete.
pub(crate) fn write_part(
    dir: &Path,
    table: &'static Table,
    number: u32,
    batches: &[RecordBatch],
    keep: impl Fn(u64) -> bool,
) -> std::result::Result<bool, WriteError> {
    let order = order(table, batches, keep);
    if order.is_empty() {
        return Ok(false);
    }
    let path = dir.join(table.part_name(number));
    let unfinished = dir.join(table.part_name(number) + ".tmp");
    let written = write(&unfinished, table, batches, &order)
        .map_err(|e| e.to_string())
        .and_then(|()| std::fs::rename(&unfinished, &path).map_err(|e| e.to_string()));
    written.map(|()| true).map_err(|why| {
        let _ = std::fs::remove_file(&unfinished);
        WriteError::new("write", &path, why)
    })
}

/// Indices of the rows to write, grouped as the table wants it, in order of time inside each group.
fn order(table: &Table, batches: &[RecordBatch], keep: impl Fn(u64) -> bool) -> Vec<usize> {
    let cells = |column: &Column| Cells::of_batches(column.kind, column.name, batches);
    let Cells::U64(numbers) = cells(&table.columns[0]) else { return Vec::new() };
    let keep = |row: &usize| numbers[*row].is_some_and(&keep);
    let mut order: Vec<usize> = (0..numbers.len()).filter(keep).collect();
    let keys: Vec<Cells> = table.sorted_by.iter().map(|&key| cells(&table.columns[key])).collect();
    let compare = |a: &usize, b: &usize| {
        keys.iter().fold(Ordering::Equal, |so_far, key| {
            so_far.then_with(|| match key {
                Cells::U64(cells) => cells[*a].cmp(&cells[*b]),
                Cells::I32(cells) => cells[*a].cmp(&cells[*b]),
                Cells::Bool(cells) => cells[*a].cmp(&cells[*b]),
                Cells::Text(cells) => cells[*a].cmp(&cells[*b]),
            })
        })
    };
    order.sort_by(compare);
    order
}

fn write(path: &Path, table: &'static Table, batches: &[RecordBatch], order: &[usize]) -> Result<()> {
    let mut open = OpenOptions::new();
    let file = open.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let mut writer = SerializedFileWriter::new(BufWriter::new(file), schema(table)?, properties(table)?)?;
    let mut group = writer.next_row_group()?;
    // One column in memory at a time: ullage's own footprint is promised.
    for column in table.columns {
        let cells = Cells::of_batches(column.kind, column.name, batches);
        let missing = || ParquetError::General(format!("no column {}", column.name));
        write_column(group.next_column()?.ok_or_else(missing)?, cells, order)?;
    }
    group.close()?;
    writer.finish()?;
    Ok(writer.inner_mut().flush()?)
}

fn write_column(mut writer: SerializedColumnWriter<'_>, cells: Cells, order: &[usize]) -> Result<()> {
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

fn schema(table: &Table) -> Result<TypePtr> {
    let field = |column: &Column| {
        let (physical, logical) = match column.kind {
            Kind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Kind::I32 => (Physical::INT32, None),
            Kind::Bool => (Physical::BOOLEAN, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let builder = Type::primitive_type_builder(column.name, physical);
        builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name).with_fields(fields).build()?))
}

/// Statistics and page indexes are left out: for files this small they are most of the bytes.
fn properties(table: &Table) -> Result<WriterPropertiesPtr> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("ullage ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(vec![
            KeyValue::new("ullage.format".to_owned(), crate::FORMAT.to_string()),
            KeyValue::new("ullage.table".to_owned(), table.name.to_owned()),
        ]));
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        properties = match column.kind {
            Kind::U64 | Kind::I32 => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Kind::Bool => properties.set_column_dictionary_enabled(path, false),
            Kind::Text => properties.set_column_dictionary_enabled(path, column.name != "payload"),
        };
    }
    Ok(Arc::new(properties.build()))
}
