//! `ullage export`: every sample and event of a recording, one JSON object a line.

use crate::arguments::{ExportArguments, ExportFormat};
use anyhow::Context;
use std::io::{BufWriter, Write};
use ullage_model::{Item, Source};
use ullage_recording::Recording;

/// Writes it to standard output.
pub fn run(arguments: &ExportArguments) -> anyhow::Result<u8> {
    let directory = crate::home::find(Some(&arguments.run))?;
    let recording = Recording::open(&directory)?;
    let ExportFormat::Json = arguments.format;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut source = recording.replay();
    while let Some(item) =
        source.next_item().map_err(|error| anyhow::anyhow!("{}: {error}", directory.display()))?
    {
        let line = match &item {
            Item::Sample(sample) => serde_json::json!({ "sample": sample }),
            Item::Event(event) => serde_json::json!({ "event": event }),
        };
        serde_json::to_writer(&mut out, &line).context("writing to standard output")?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(0)
}
