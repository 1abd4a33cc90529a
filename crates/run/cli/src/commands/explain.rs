//! `ullage explain`: the manual page of a cause, or what a log says of a job that failed without ullage.

use crate::arguments::ExplainArguments;
use crate::printer;
use anyhow::{bail, Context};
use std::fs::File;
use std::io::{BufRead, BufReader};
use ullage_diagnosis::Cause;
use ullage_report::{json, text};

/// What stands below the list.
const LIST_END: &str = "
* not detected in a recording: a page to read

ullage explain CAUSE shows a cause's page; the beginning of its name is enough.
";

/// Prints it.
pub fn run(arguments: &ExplainArguments) -> anyhow::Result<u8> {
    let Some(what) = arguments.what.as_deref() else {
        list(arguments)?;
        return Ok(0);
    };
    if what == "-" {
        return log(arguments, "standard input", std::io::stdin().lock());
    }
    if let Some(cause) = ullage_diagnosis::cause(what) {
        return page(arguments, cause);
    }
    match File::open(what) {
        Ok(file) => log(arguments, what, BufReader::with_capacity(256 << 10, file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !what.contains(['/', '.']) => {
            page(arguments, meant(what)?)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {what}")),
    }
}

fn list(arguments: &ExplainArguments) -> anyhow::Result<()> {
    let causes = ullage_diagnosis::causes();
    if arguments.json {
        let causes: Vec<_> = causes
            .iter()
            .map(|cause| serde_json::json!({"id": cause.id, "title": cause.title, "family": cause.family}))
            .collect();
        return printer::out(&json::text(&serde_json::json!({"schema": 1, "causes": causes})));
    }
    let star = |cause: &Cause| if cause.is_undetected() { " *" } else { "" };
    let families: Vec<_> = ullage_diagnosis::families()
        .iter()
        .map(|heading| text::CauseFamily {
            heading,
            causes: causes
                .iter()
                .filter(|cause| cause.family == *heading)
                .map(|cause| (format!("{}{}", cause.id, star(cause)), cause.title))
                .collect(),
        })
        .collect();
    printer::out(&format!("{}{LIST_END}", text::causes(&families, &printer::stdout_style())))
}

fn page(arguments: &ExplainArguments, cause: &Cause) -> anyhow::Result<u8> {
    let page = cause.page();
    if arguments.json {
        let page = serde_json::json!({"schema": 1, "cause": cause.id, "title": cause.title, "page": page});
        printer::out(&json::text(&page))?;
    } else {
        printer::out(&text::page(&page, &printer::stdout_style()))?;
    }
    Ok(0)
}

/// The cause that is meant by the beginning of its name.
fn meant(typed: &str) -> anyhow::Result<&'static Cause> {
    let begins = |cause: &&Cause| !typed.is_empty() && cause.id.starts_with(typed);
    let begun: Vec<&Cause> = ullage_diagnosis::causes().iter().filter(begins).collect();
    match (begun.as_slice(), ullage_diagnosis::similar_cause(typed)) {
        ([one], _) => Ok(one),
        ([_, _, ..], _) => {
            let ids: Vec<&str> = begun.iter().map(|cause| cause.id).collect();
            bail!("several causes begin with `{typed}`: {}", ids.join(", "))
        }
        ([], Some(similar)) => {
            bail!("no cause and no file is named `{typed}`; did you mean: ullage explain {similar}")
        }
        ([], None) => {
            bail!("no cause and no file is named `{typed}`; `ullage explain` lists all causes")
        }
    }
}

fn log(arguments: &ExplainArguments, name: &str, reader: impl BufRead) -> anyhow::Result<u8> {
    let verdict = ullage_diagnosis::explain_log(reader).with_context(|| format!("cannot explain {name}"))?;
    let mut notes: Vec<String> = Vec::new();
    // "Run it under ullage" is the last fix of every finding already.
    for command in verdict.settle.iter().filter(|command| !command.starts_with("ullage run")) {
        let note = format!("To find out which: {command}");
        // Several causes are told apart by one command.
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let view = text::LogView {
        source: name,
        lines: verdict.lines,
        findings: &verdict.findings,
        gpu_out_of_memory_line: verdict.gpu_out_of_memory_line,
        notes: &notes,
    };
    if arguments.json {
        printer::out(&json::text(&json::log(&view)))?;
    } else {
        printer::out(&text::log(&view, &printer::stdout_style()))?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn a_cause_is_found_by_its_beginning_and_a_mistyped_one_is_suggested() {
        assert!(meant("max-map").is_ok_and(|cause| cause.id == "max-map-count-exhausted"));
        let said = |typed: &str| meant(typed).err().unwrap().to_string();
        assert!(said("max-mpa-count-exausted").ends_with("ullage explain max-map-count-exhausted"));
        assert!(said("shm").contains("shm-full-bytes, ") && said("shm").contains("several"));
        assert!(said("zzz").ends_with("lists all causes"));
        assert!(said("").ends_with("lists all causes"));
    }
}
