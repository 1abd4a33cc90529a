//! What does a finding rest on? A quantity, where it was read and when, and the sentence that it supports.
//!
//! Reports spell them; nobody else has to read them back.

use crate::{At, Limit, Missing, Scope};
use std::fmt;

/// In what a number is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things of one kind, by their plural: `mappings`, `processes`.
    Of(&'static str),
}

impl Unit {
    /// As it stands in JSON: `bytes`, `mappings`.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Of(things) => things,
        }
    }
}

/// A number, a text, or why it is missing.
#[derive(Clone, Debug, PartialEq)]
pub enum EvidenceValue {
    /// A count or a number of bytes.
    Number(f64, Unit),
    /// A message, a name.
    Text(String),
    /// No value.
    Missing(Missing, Unit),
}

impl EvidenceValue {
    /// Of a number, in what it is counted; of a text nothing.
    pub fn unit(&self) -> &'static str {
        match self {
            EvidenceValue::Number(_, unit) | EvidenceValue::Missing(_, unit) => unit.word(),
            EvidenceValue::Text(_) => "",
        }
    }
}

/// Where a reading comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvidenceSource {
    /// The agent in a process.
    Agent(i32),
    /// The agents in a process and in its siblings.
    Agents(i32),
    /// A file below `/proc/PID`; the folder itself where it has no name.
    Process(i32, &'static str),
    /// That file of a process and of its siblings.
    Processes(i32, &'static str),
    /// That file of two processes.
    Pair(i32, i32, &'static str),
    /// That of all processes that a process started.
    Children(i32, &'static str),
    /// A file of a cgroup.
    Cgroup(&'static str, String),
    /// What a cgroup's memory controller counts.
    CgroupMemory(String),
    /// statvfs of a path.
    Filesystem(String),
    /// A line of a log.
    Line(u64),
    /// The reading of a limit.
    Limit(Scope),
    /// Something of which there is one: `kernel log`, `/proc/meminfo`; empty where it is nothing that was read.
    Named(&'static str),
}

impl fmt::Display for EvidenceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvidenceSource::Agent(pid) => write!(f, "agent in {pid}"),
            EvidenceSource::Agents(pid) => write!(f, "agent in {pid} and in its siblings"),
            EvidenceSource::Process(pid, "") => write!(f, "/proc/{pid}"),
            EvidenceSource::Process(pid, file) => write!(f, "/proc/{pid}/{file}"),
            EvidenceSource::Processes(pid, file) => {
                write!(f, "/proc/{pid}/{file} and those of its siblings")
            }
            EvidenceSource::Pair(one, other, file) => {
                write!(f, "/proc/{one}/{file} and /proc/{other}/{file}")
            }
            EvidenceSource::Children(pid, file) => write!(f, "{file} below {pid}"),
            EvidenceSource::Cgroup(file, path) => write!(f, "{file} of {path}"),
            EvidenceSource::CgroupMemory(path) => write!(f, "memory of cgroup {path}"),
            EvidenceSource::Filesystem(path) => write!(f, "statvfs {path}"),
            EvidenceSource::Line(number) => write!(f, "line {number}"),
            EvidenceSource::Limit(scope) => scope.fmt(f),
            EvidenceSource::Named(name) => f.write_str(name),
        }
    }
}

impl From<&'static str> for EvidenceSource {
    fn from(name: &'static str) -> Self {
        EvidenceSource::Named(name)
    }
}

/// One reading that a finding rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What was read: `mappings`, `exception`.
    pub what: String,
    /// Its value.
    pub value: EvidenceValue,
    /// The limit beside it, in the same unit, where there is one.
    pub limit: Option<Limit>,
    /// What it came from.
    pub source: EvidenceSource,
    /// When; none where time does not apply (a log).
    pub at: Option<At>,
    /// The sentence it supports, for people: ends with a full stop.
    pub sentence: String,
    /// The sentence says the value, and its limit: a screen need not say them again.
    pub said: bool,
}

impl Evidence {
    /// Its sentence up to the first full stop that ends one, without that stop.
    pub fn first_sentence(&self) -> &str {
        let text = self.sentence.trim_end();
        let ends = |at: usize| text[at + 2..].starts_with(|c: char| c.is_uppercase() || c == '`');
        let end = text.match_indices(". ").map(|(at, _)| at).find(|at| ends(*at));
        text[..end.unwrap_or(text.len())].trim_end_matches('.')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_sentence_ends_at_a_full_stop_that_another_one_follows() {
        let first = |sentence: &str| {
            let value = EvidenceValue::Text(String::new());
            let evidence = Evidence {
                what: String::new(),
                value,
                limit: None,
                source: "".into(),
                at: None,
                sentence: sentence.into(),
                said: true,
            };
            evidence.first_sentence().to_owned()
        };
        assert_eq!(
            first("It grew at leak2.py:9 (list). It is never emptied."),
            "It grew at leak2.py:9 (list)"
        );
        assert_eq!(
            first("memory.max of a.b is 1.5 GiB vs. 2 GiB."),
            "memory.max of a.b is 1.5 GiB vs. 2 GiB"
        );
        assert_eq!(first(""), "");
    }
}
