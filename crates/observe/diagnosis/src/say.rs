//! How evidence sentences spell counts, bytes, ages and processes, and how evidence is made.

use crate::history::ProcessHistory;
use ullage_model::{At, Evidence, EvidenceValue, Limit, ProcessRef};

/// `65,530`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `254 MiB`, `1.5 GiB`, `320 bytes`.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1024 {
        return format!("{number} bytes");
    }
    let mut value = number as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value >= 99.95 || (value - value.round()).abs() < 0.05 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// `0.4 s`; below a hundredth of a second `0.01 s`.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds.max(0.0) {
        s if s < 0.095 => format!("{:.2} s", s.max(0.01)),
        s if s < 99.95 => format!("{s:.1} s"),
        s => format!("{s:.0} s"),
    }
}

/// `3 processes`, `1 process`.
pub(crate) fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `the trainer (pid 4711)`.
pub(crate) fn who(process: &ProcessHistory) -> String {
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

/// As findings name a process.
pub(crate) fn process_ref(process: &ProcessHistory) -> ProcessRef {
    ProcessRef { id: process.id, role: process.role.clone(), name: process.name().to_owned() }
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
pub(crate) fn of(mut evidence: Evidence, limit: u64) -> Evidence {
    evidence.limit = Some(Limit::At(limit));
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelt_for_people() {
        assert_eq!(count(65_530), "65,530");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000_000), "1,000,000");
        assert_eq!(bytes(320), "320 bytes");
        assert_eq!(bytes(266_338_304), "254 MiB");
        assert_eq!(bytes(64 << 30), "64 GiB");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
        assert_eq!(seconds(0.4), "0.4 s");
        assert_eq!(seconds(0.0), "0.01 s");
    }
}
