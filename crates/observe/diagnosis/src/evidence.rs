//! How evidence sentences name processes, and how evidence is made. Figures are spelt as in reports.

pub(crate) use crate::history::process_ref;
use crate::history::ProcessHistory;
pub(crate) use ullage_model::figures::{bytes, count, duration as seconds, plural, share};
pub(crate) use ullage_model::EvidenceSource as Source;
use ullage_model::{At, Evidence, EvidenceValue, Limit, Unit};

/// `the trainer (pid 4711)`.
pub(crate) fn describe(process: &ProcessHistory) -> String {
    match process.role {
        ullage_model::Role::Other if !process.name().is_empty() => {
            format!("{} (pid {})", process.name(), process.id.pid)
        }
        ullage_model::Role::Other => format!("process {}", process.id.pid),
        ref role => format!("the {} (pid {})", role.label(), process.id.pid),
    }
}

/// With a capital, for the beginning of a sentence.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A count, or bytes.
pub(crate) fn number(
    what: &str,
    value: u64,
    unit: &'static str,
    source: impl Into<Source>,
    at: At,
    sentence: String,
) -> Evidence {
    let unit = if unit == "bytes" { Unit::Bytes } else { Unit::Of(unit) };
    Evidence {
        what: what.to_owned(),
        value: EvidenceValue::Number(value as f64, unit),
        limit: None,
        source: source.into(),
        at: Some(at),
        sentence,
        said: true,
    }
}

/// A text, as a message or a setting.
pub(crate) fn text(
    what: &str,
    value: &str,
    source: impl Into<Source>,
    at: Option<At>,
    sentence: String,
) -> Evidence {
    Evidence {
        what: what.to_owned(),
        value: EvidenceValue::Text(value.to_owned()),
        limit: None,
        source: source.into(),
        at,
        sentence,
        said: true,
    }
}

/// A text that its sentence quotes, without the full stops at its end.
pub(crate) fn quoted(
    what: &str,
    value: &str,
    source: impl Into<Source>,
    at: Option<At>,
    sentence: String,
) -> Evidence {
    Evidence { said: !value.ends_with('.'), ..text(what, value, source, at, sentence) }
}

/// The same with its limit.
pub(crate) fn with_limit(evidence: Evidence, limit: u64) -> Evidence {
    Evidence { limit: Some(Limit::At(limit)), said: false, ..evidence }
}

/// The same with its limit, where the sentence says both as a report would: `63 MiB of 64 MiB`.
pub(crate) fn out_of(evidence: Evidence, limit: u64) -> Evidence {
    Evidence { limit: Some(Limit::At(limit)), ..evidence }
}

/// So many bytes look like so many.
pub(crate) fn alike(one: u64, other: u64) -> bool {
    bytes(one) == bytes(other)
}

/// The same, of which the sentence does not say the value.
pub(crate) fn apart(evidence: Evidence) -> Evidence {
    Evidence { said: false, ..evidence }
}
