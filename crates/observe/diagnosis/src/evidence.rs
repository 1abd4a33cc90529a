//! How evidence sentences name processes, and how evidence is made. Figures are spelt as in reports.

pub(crate) use crate::history::process_ref;
use crate::history::ProcessHistory;
pub(crate) use ullage_model::figures::{bytes, count, duration as seconds, plural, share};
pub(crate) use ullage_model::EvidenceSource as Source;
use ullage_model::{figures, At, Evidence, EvidenceValue, Limit, Unit};

/// `the trainer (pid 4711)`, `loader worker 3 (pid 4712)`.
pub(crate) fn describe(process: &ProcessHistory) -> String {
    match process.role {
        ullage_model::Role::Other if !process.name().is_empty() => {
            format!("{} (pid {})", process.name(), process.id.pid)
        }
        ullage_model::Role::Other => format!("process {}", process.id.pid),
        ullage_model::Role::Main => format!("the main process (pid {})", process.id.pid),
        // Its number is its name.
        ref role @ (ullage_model::Role::Rank(_) | ullage_model::Role::LoaderWorker(Some(_))) => {
            format!("{} (pid {})", role.label(), process.id.pid)
        }
        ref role => format!("the {} (pid {})", role.label(), process.id.pid),
    }
}

/// `SIGSEGV`; a number where it has no common name.
pub(crate) fn signal_name(signal: i32) -> String {
    let names = [(1, "HUP"), (2, "INT"), (3, "QUIT"), (4, "ILL"), (6, "ABRT"), (7, "BUS"), (8, "FPE")];
    let more = [(9, "KILL"), (11, "SEGV"), (13, "PIPE"), (14, "ALRM"), (15, "TERM"), (24, "XCPU")];
    let name = names.iter().chain(&more).find(|name| name.0 == signal);
    name.map_or_else(|| format!("signal {signal}"), |(_, name)| format!("SIG{name}"))
}

/// With a capital, for the beginning of a sentence.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// `/home/me/train.py:12 main` as `main() (train.py:12)`; of what it calls that is of C, the frame has the parentheses.
pub(crate) fn frame(frame: &str) -> String {
    let (place, function) = frame.rsplit_once(' ').unwrap_or((frame, ""));
    let place = place.rsplit('/').next().unwrap_or(place);
    match function {
        "" | "<module>" => place.to_owned(),
        _ => format!("{}() ({place})", function.trim_end_matches("()")),
    }
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
    made(what, EvidenceValue::Number(value as f64, unit), source.into(), Some(at), sentence)
}

/// A text, as a message or a setting.
pub(crate) fn text(
    what: &str,
    value: &str,
    source: impl Into<Source>,
    at: Option<At>,
    sentence: String,
) -> Evidence {
    made(what, EvidenceValue::Text(value.to_owned()), source.into(), at, sentence)
}

/// The same with its limit.
pub(crate) fn with_limit(evidence: Evidence, limit: u64) -> Evidence {
    let limit = Some(Limit::At(limit));
    Evidence { said: says(&evidence.sentence, &evidence.value, limit), limit, ..evidence }
}

fn made(what: &str, value: EvidenceValue, source: Source, at: Option<At>, sentence: String) -> Evidence {
    let said = says(&sentence, &value, None);
    Evidence { what: what.to_owned(), value, limit: None, source, at, sentence, said }
}

/// The sentence spells the reading as a report would: `63 MiB of 64 MiB`. A report need not repeat it then.
fn says(sentence: &str, value: &EvidenceValue, limit: Option<Limit>) -> bool {
    let spelt = match (value, limit.and_then(Limit::at)) {
        (EvidenceValue::Text(text), _) => text.trim_end_matches('.').to_owned(),
        (EvidenceValue::Missing(..), _) => return false,
        (EvidenceValue::Number(n, unit), None) => figures::amount(*n, unit.word()),
        (EvidenceValue::Number(n, unit), Some(limit)) => {
            let used = if *unit == Unit::Bytes { figures::amount(*n, "bytes") } else { figures::number(*n) };
            format!("{used} of {}", figures::amount(limit as f64, unit.word()))
        }
    };
    sentence.contains(&spelt)
}
