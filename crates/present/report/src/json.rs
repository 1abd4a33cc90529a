//! The verdict as JSON, schema 1, for programs. The keys and their order are in [`crate::schema`].

use crate::format;
use crate::schema::{FindingJson, VerdictJson};
use crate::text::LogView;
use serde_json::{json, Value};
use ullage_model::Verdict;

/// The verdict as a JSON value (`ullage run --json`, `ullage report --json`).
pub fn verdict(verdict: &Verdict) -> Value {
    serde_json::to_value(VerdictJson::from(verdict)).unwrap_or_else(failure)
}

/// The verdict as the bytes of a JSON file: indented, one newline at the end.
pub fn verdict_text(verdict: &Verdict) -> String {
    text(&self::verdict(verdict))
}

/// Any value as people may look at it: indented, one newline at the end, and nothing in it that steers a terminal.
pub fn text(value: &Value) -> String {
    // `{:#}` of a Value is its indented form and cannot fail.
    format::clean_json(&format!("{value:#}\n"))
}

/// The same in one line.
pub fn line(value: &Value) -> String {
    format::clean_json(&format!("{value}\n"))
}

/// What a log says, as JSON: its findings in the shape that a verdict's have.
pub fn log(log: &LogView<'_>) -> Value {
    let findings: Vec<FindingJson<'_>> = FindingJson::all(log.findings);
    json!({
        "schema": crate::schema::SCHEMA,
        "log": log.source,
        "lines": log.lines,
        "findings": serde_json::to_value(findings).unwrap_or_else(failure),
        "notes": log.notes,
        "gpu_out_of_memory_line": log.gpu_out_of_memory_line,
    })
}

/// The types of the schema have string keys and finite numbers, so that this is not reached; a reader gets
/// the reason all the same.
fn failure(error: serde_json::Error) -> Value {
    json!({"schema": crate::schema::SCHEMA, "error": error.to_string()})
}
