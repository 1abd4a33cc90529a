//! `ullage export`: every sample and event of a recording as JSON, or its tables as Parquet or CSV.

use crate::arguments::{ExportArguments, ExportFormat};
use crate::{home, printer};
use anyhow::Context;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use ullage_model::{Item, Source};
use ullage_recording::{Recording, TableFormat};

/// What JSON goes into where a directory is given.
const JSON_FILE: &str = "recording.jsonl";

/// Writes it to standard output, or into a directory.
pub fn run(arguments: &ExportArguments) -> anyhow::Result<u8> {
    let directory = home::find(Some(&arguments.run))?;
    let recording = Recording::open(&directory)?;
    recording.damage.iter().for_each(|damage| printer::note(&damage.to_string()));
    match arguments.format {
        ExportFormat::Json => match &arguments.output {
            None => json(&recording, std::io::stdout().lock())?,
            Some(output) => json_file(&recording, output, arguments.force)?,
        },
        ExportFormat::Parquet => tables(&recording, &directory, TableFormat::Parquet, arguments)?,
        ExportFormat::Csv => tables(&recording, &directory, TableFormat::Csv, arguments)?,
    }
    Ok(0)
}

fn tables(
    recording: &Recording,
    directory: &Path,
    format: TableFormat,
    arguments: &ExportArguments,
) -> anyhow::Result<()> {
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None => beside_us(directory, format)?,
    };
    let exported = recording.export(&output, format, arguments.force)?;
    exported.damage.iter().for_each(|damage| printer::note(&damage.to_string()));
    for (path, rows) in exported.files {
        printer::note(&format!("{}: {} rows", path.display(), ullage_report::format::count(rows)));
    }
    Ok(())
}

/// `RUN-parquet` in the current directory.
fn beside_us(directory: &Path, format: TableFormat) -> anyhow::Result<PathBuf> {
    let full = directory.canonicalize().with_context(|| directory.display().to_string())?;
    let name = full.file_name().context("the recording has no name: use -o DIR")?;
    let mut name = name.to_owned();
    name.push(format!("-{}", format.extension()));
    Ok(name.into())
}

fn json_file(recording: &Recording, output: &Path, force: bool) -> anyhow::Result<()> {
    ullage_recording::prepare(output, &[JSON_FILE.to_owned()], force)?;
    let path = output.join(JSON_FILE);
    let unfinished = output.join(format!("{JSON_FILE}.tmp"));
    let mut open = OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(0o600);
    let written = open.open(&unfinished).map_err(anyhow::Error::from).and_then(|file| json(recording, file));
    written
        .and_then(|()| std::fs::rename(&unfinished, &path).map_err(anyhow::Error::from))
        .inspect_err(|_| drop(std::fs::remove_file(&unfinished)))
        .with_context(|| format!("cannot write {}", path.display()))?;
    printer::note(&path.display().to_string());
    Ok(())
}

fn json(recording: &Recording, out: impl Write) -> anyhow::Result<()> {
    let mut out = BufWriter::new(out);
    let mut replay = recording.replay();
    while let Some(item) = replay.next_item().map_err(|error| anyhow::anyhow!("{error}"))? {
        let line = match &item {
            Item::Sample(sample) => serde_json::json!({ "sample": sample }),
            Item::Event(event) => serde_json::json!({ "event": event }),
        };
        // A reader that went away is no fault of the stream's.
        out.write_all(ullage_report::json::line(&line).as_bytes())?;
    }
    out.flush()?;
    replay.damage().iter().for_each(|damage| printer::note(&damage.to_string()));
    Ok(())
}
