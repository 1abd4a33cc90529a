//! The rows of a fleet as one Parquet file, for engines that read many: the columns are the keys of a row in
//! docs/schema/fleet-1.json, and of its figures those that have a limit.

use crate::error::WriteError;
use crate::part::appear;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use ullage_model::FleetRow;

/// A low level, as for parts of a recording.
const ZSTD_LEVEL: i32 = 3;

/// A column: its name, and the cell of a row.
type Column = (&'static str, Cell);

/// How a cell is come by, which is also its type.
#[derive(Clone, Copy)]
enum Cell {
    Text(fn(&FleetRow) -> Option<String>),
    Whole(fn(&FleetRow) -> Option<i64>),
    Number(fn(&FleetRow) -> Option<f64>),
    Flag(fn(&FleetRow) -> bool),
    /// A figure, by the name of the column.
    Figure,
}

const COLUMNS: [Column; 50] = [
    ("path", Cell::Text(|row| Some(row.path.clone()))),
    ("run", Cell::Text(|row| Some(row.run.clone()))),
    ("job", Cell::Text(|row| row.job.clone())),
    ("node", Cell::Text(|row| row.node.clone())),
    ("rank", Cell::Whole(|row| row.rank.map(i64::from))),
    ("attempt", Cell::Whole(|row| Some(row.attempt.into()))),
    ("node_rank", Cell::Whole(|row| row.node_rank.map(i64::from))),
    ("started_unix", Cell::Number(|row| Some(row.started_unix))),
    ("ended_unix", Cell::Number(|row| row.ended_unix)),
    ("duration_s", Cell::Number(|row| row.duration_s)),
    ("closed", Cell::Flag(|row| row.closed)),
    ("outcome", Cell::Text(|row| Some(row.outcome.word().to_owned()))),
    ("code", Cell::Whole(|row| row.code.map(i64::from))),
    ("signal", Cell::Whole(|row| row.signal.map(i64::from))),
    ("by", Cell::Text(|row| row.by.map(word))),
    ("healthy", Cell::Flag(|row| row.healthy)),
    ("headline", Cell::Text(|row| Some(row.headline.clone()))),
    ("cause", Cell::Text(|row| row.cause.clone())),
    ("title", Cell::Text(|row| row.title.clone())),
    ("severity", Cell::Text(|row| row.severity.map(word))),
    ("proof", Cell::Text(|row| row.proof.map(word))),
    ("cause_role", Cell::Text(|row| row.cause_role.clone())),
    ("cause_rank", Cell::Whole(|row| row.cause_rank.map(i64::from))),
    ("failure", Cell::Text(|row| row.failure.map(|kind| kind.word().to_owned()))),
    ("failure_unix", Cell::Number(|row| row.failure_unix)),
    ("failure_error_s", Cell::Number(|row| row.failure_error_s)),
    ("failure_role", Cell::Text(|row| row.failure_role.clone())),
    ("failure_rank", Cell::Whole(|row| row.failure_rank.map(i64::from))),
    ("ending", Cell::Text(|row| row.ending.clone())),
    ("failure_sentence", Cell::Text(|row| row.failure_sentence.clone())),
    ("clock_error_s", Cell::Number(|row| row.clock_error_s)),
    ("boot_id", Cell::Text(|row| row.boot_id.clone())),
    ("peak_bytes", Cell::Whole(|row| row.peak_bytes.and_then(|bytes| bytes.try_into().ok()))),
    ("growth", Cell::Text(|row| row.growth.clone())),
    ("growth_per_second", Cell::Number(|row| row.growth_per_second)),
    ("limit", Cell::Text(|row| row.limit.clone())),
    ("limit_scope", Cell::Text(|row| row.limit_scope.clone())),
    ("limit_time_left_s", Cell::Number(|row| row.limit_time_left_s)),
    ("mappings", Cell::Figure),
    ("descriptors", Cell::Figure),
    ("address_space", Cell::Figure),
    ("cgroup_memory", Cell::Figure),
    ("cgroup_tasks", Cell::Figure),
    ("shm_bytes", Cell::Figure),
    ("shm_inodes", Cell::Figure),
    ("tmp_bytes", Cell::Figure),
    ("world_size", Cell::Whole(|row| row.world_size.map(i64::from))),
    ("world_nodes", Cell::Whole(|row| row.world_nodes.map(i64::from))),
    ("local_size", Cell::Whole(|row| row.local_size.map(i64::from))),
    ("problem", Cell::Text(|row| row.problem.clone())),
];

/// Writes them; the file appears under its name only when it is complete.
///
/// # Errors
/// Where it cannot be written.
pub fn write_rows(path: &Path, rows: &[FleetRow]) -> Result<(), WriteError> {
    appear(path, |unfinished| {
        let mut open = OpenOptions::new();
        open.write(true).create(true).truncate(true).mode(0o644);
        let file = open.open(unfinished).map_err(|e| e.to_string())?;
        write(file, rows).map(Some).map_err(|e| e.to_string())
    })
    .map(drop)
}

fn write(file: File, rows: &[FleetRow]) -> ParquetResult<()> {
    let fields = COLUMNS.iter().map(|(name, cell)| {
        let (physical, logical) = match cell {
            Cell::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cell::Whole(_) => (Physical::INT64, None),
            Cell::Number(_) | Cell::Figure => (Physical::DOUBLE, None),
            Cell::Flag(_) => (Physical::BOOLEAN, None),
        };
        let builder = Type::primitive_type_builder(name, physical);
        builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build().map(Arc::new)
    });
    let fields = fields.collect::<ParquetResult<Vec<_>>>()?;
    let schema = Arc::new(Type::group_type_builder("fleet").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_created_by(concat!("ullage ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .build();
    let mut writer = SerializedFileWriter::new(BufWriter::new(file), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (name, cell) in &COLUMNS {
        if let Some(column) = group.next_column()? {
            write_column(column, name, *cell, rows)?;
        }
    }
    group.close()?;
    writer.finish()?;
    writer.inner_mut().flush()?;
    Ok(())
}

fn write_column(
    mut writer: SerializedColumnWriter<'_>,
    name: &str,
    cell: Cell,
    rows: &[FleetRow],
) -> ParquetResult<()> {
    fn split<T>(cells: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
        let cells: Vec<Option<T>> = cells.collect();
        let levels = cells.iter().map(|cell| cell.is_some().into()).collect();
        (cells.into_iter().flatten().collect(), levels)
    }
    match cell {
        Cell::Text(of) => {
            let (values, levels) =
                split(rows.iter().map(|row| of(row).map(|text| ByteArray::from(text.as_str()))));
            writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
        Cell::Whole(of) => {
            let (values, levels) = split(rows.iter().map(of));
            writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        Cell::Number(of) => {
            let (values, levels) = split(rows.iter().map(of));
            writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        }
        Cell::Flag(of) => {
            let (values, levels) = split(rows.iter().map(|row| Some(of(row))));
            writer.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
        }
        Cell::Figure => {
            let (values, levels) = split(rows.iter().map(|row| row.figures.get(name).copied()));
            writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        }
    }
    writer.close()
}

/// As it stands in JSON.
fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn every_key_of_a_row_is_a_column_and_rows_come_back() {
        let row = FleetRow { path: "a".into(), rank: Some(3), ..FleetRow::default() };
        let json = serde_json::to_value(&row).unwrap();
        let keys = json.as_object().unwrap().keys().filter(|key| *key != "figures");
        for key in keys {
            assert!(COLUMNS.iter().any(|(name, _)| name == key), "{key} has no column");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.parquet");
        write_rows(&file, &[row.clone(), FleetRow { path: "b".into(), ..FleetRow::default() }]).unwrap();
        let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
        let rows: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].contains("path: \"a\"") && rows[0].contains("rank: 3"), "{}", rows[0]);
        assert!(rows[1].contains("rank: null"), "{}", rows[1]);
        assert!(write_rows(Path::new("/nowhere/rows.parquet"), &[row]).is_err());
    }
}
