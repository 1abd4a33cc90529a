//! `ullage explain`: the manual page of a cause, or what a log says of a job that failed without ullage.

use crate::arguments::ExplainArguments;
use crate::printer;
use anyhow::{bail, Context};
use std::fs::File;
use std::io::{BufRead, BufReader};
use ullage_report::{json, text};

/// Prints it.
pub fn run(arguments: &ExplainArguments) -> anyhow::Result<u8> {
    let Some(what) = arguments.what.as_deref() else {
        let list: String = ullage_diagnosis::causes()
            .iter()
            .map(|cause| format!("{:34} {}\n", cause.id, cause.title))
            .collect();
        printer::out(&list)?;
        return Ok(0);
    };
    if what == "-" {
        return log(arguments, "standard input", std::io::stdin().lock());
    }
    if let Some(page) = ullage_diagnosis::cause_page(what) {
        printer::out(&text::page(&page, &printer::stdout_style()))?;
        return Ok(0);
    }
    let file = match File::open(what) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !what.contains(['/', '.']) => {
            bail!("`{what}` is neither a cause nor a file; `ullage explain` alone lists the causes")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {what}")),
    };
    log(arguments, what, BufReader::new(file))
}

fn log(arguments: &ExplainArguments, name: &str, reader: impl BufRead) -> anyhow::Result<u8> {
    let verdict = ullage_diagnosis::explain_log(reader).with_context(|| format!("cannot explain {name}"))?;
    let notes: Vec<String> = verdict
        .settle
        .iter()
        // "Run it under ullage" is the last fix of every finding already.
        .filter(|command| !command.starts_with("ullage run"))
        .map(|command| format!("To tell which: {command}"))
        .collect();
    let view =
        text::LogView { source: name, lines: verdict.lines, findings: &verdict.findings, notes: &notes };
    if arguments.json {
        printer::out(&format!("{}\n", serde_json::to_string_pretty(&json::log(&view))?))?;
    } else {
        printer::out(&text::log(&view, &printer::stdout_style()))?;
    }
    Ok(0)
}
