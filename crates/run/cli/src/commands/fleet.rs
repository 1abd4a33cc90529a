//! `ullage fleet`: which of many recordings failed first, of what, and what is different about its node.

use crate::arguments::FleetArguments;
use crate::{fleet_rows, printer};
use anyhow::Context;
use std::path::Path;
use ullage_report::{fleet, text};

/// Prints the answer.
pub fn run(arguments: &FleetArguments) -> anyhow::Result<u8> {
    let folders = fleet_rows::folders(&arguments.directory)?;
    if folders.is_empty() {
        anyhow::bail!("no recordings in {}", arguments.directory.display());
    }
    let answer = fleet_rows::read(&folders).answer(arguments.job.as_deref());
    if let (Some(job), 0) = (&arguments.job, answer.recordings) {
        let known: Vec<String> = answer.other_jobs.iter().take(8).map(|job| format!("`{job}`")).collect();
        anyhow::bail!("no recording of job `{job}`; jobs here: {}", known.join(", "));
    }
    if let Some(file) = &arguments.rows {
        ullage_recording::write_rows(file, &answer.rows)?;
    }
    if let Some(file) = &arguments.html {
        return write_page(&ullage_page::render_fleet(&answer, env!("CARGO_PKG_VERSION")), file);
    }
    if arguments.json {
        printer::out(&fleet::json(&answer))?;
    } else {
        printer::out(&text::fleet(&answer, &printer::stdout_style()))?;
    }
    Ok(0)
}

fn write_page(page: &str, file: &Path) -> anyhow::Result<u8> {
    if file.as_os_str() == "-" {
        printer::out(page)?;
    } else {
        std::fs::write(file, page)
            .with_context(|| format!("the page could not be written to {}", file.display()))?;
    }
    Ok(0)
}
