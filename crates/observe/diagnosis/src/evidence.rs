//! How evidence sentences name processes, and how evidence is made. Figures are spelt as in reports.

pub(crate) use crate::history::process_ref;
use crate::history::ProcessHistory;
pub(crate) use ullage_model::figures::{bytes, count, duration as seconds, plural, share};
use ullage_model::{At, Evidence, EvidenceValue, Limit};

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

/// A number with its limit. `what` also tells the unit apart by name: bytes are bytes.
pub(crate) fn number(what: &str, value: u64, unit: &str, source: &str, at: At, sentence: String) -> Evidence {
    Evidence {
        what: what.to_owned(),
        value: EvidenceValue::Number(value as f64),
        limit: None,
        unit: unit.to_owned(),
        source: source.to_owned(),
        at: Some(at),
        sentence,
    }
}

/// A text, as a message or a setting.
pub(crate) fn text(what: &str, value: &str, source: &str, at: Option<At>, sentence: String) -> Evidence {
    Evidence {
        what: what.to_owned(),
        value: EvidenceValue::Text(value.to_owned()),
        limit: None,
        unit: String::new(),
        source: source.to_owned(),
        at,
        sentence,
    }
}

/// The same with its limit.
pub(crate) fn with_limit(mut evidence: Evidence, limit: u64) -> Evidence {
    evidence.limit = Some(Limit::At(limit));
    evidence
}
