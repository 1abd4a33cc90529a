//! How likely each cause is, given the messages of a log, and which of the messages came first.
//!
//! The surprise: the last lines of a log are mostly echoes. "DataLoader worker exited unexpectedly", "Killed"
//! and a leaked semaphore all report that something else failed before. Where the log shows what ([`Others`]), they say
//! nothing of memory; nor do notices, which a job prints and goes on.

use super::log_match::LogMatch;
use super::messages::{settles, Kind};
use super::unrelated_failures::Others;
use super::words::singled_out;
use crate::causes::cause;
use crate::evidence;
use crate::policy::given::{DEFAULT_MAPPINGS, PAGE_BYTES};
use crate::policy::log::{HUGE_REQUEST_BYTES, HUGE_REQUEST_STEPS, NEAR_DEFAULT};
use crate::rule::Cause;
use std::collections::BTreeMap;
use ullage_model::{Evidence, Finding, Fix, Proof, Severity};

/// Findings told.
const MOST_FINDINGS: usize = 5;

fn is_echo(found: &LogMatch) -> bool {
    found.kind == Kind::Echo
}

fn is_notice(found: &LogMatch) -> bool {
    found.kind == Kind::Notice
}

/// Marks echoes, and whatever stands behind the first message that is none; drops what a failure of another kind explains.
pub(crate) fn mark_what_follows(matches: &mut Vec<LogMatch>, others: &Others) {
    matches.retain(|found| match found.pattern {
        "nccl-unhandled-system" if others.network => false,
        _ if is_echo(found) => !found.explained,
        _ => !(is_notice(found) && others.any()),
    });
    let first = matches.iter().find(|found| !is_echo(found) && !is_notice(found));
    let first = first.or(matches.iter().find(|found| !is_notice(found))).or(matches.first());
    let first = first.map(|found| found.line);
    for found in matches {
        let is_first = Some(found.line) == first;
        found.follows = !is_first;
    }
}

/// Causes, likeliest first, and the command that settles each.
pub(crate) fn findings(matches: &[LogMatch]) -> (Vec<Finding>, Vec<String>) {
    let mut likely: BTreeMap<&'static str, ((usize, bool, usize), &LogMatch)> = BTreeMap::new();
    for found in matches {
        for (index, id) in found.causes.iter().enumerate() {
            let behind = behind(found, id, index);
            let best = likely.entry(id.as_str()).or_insert((behind, found));
            if behind < best.0 {
                *best = (behind, found);
            }
        }
    }
    let mut ranked: Vec<_> = likely.into_iter().collect();
    ranked.sort_by_key(|(id, (behind, found))| (*behind, found.line, *id));
    ranked.truncate(MOST_FINDINGS);
    let settle = ranked.iter().map(|(id, _)| settles(id).to_owned()).collect();
    (ranked.into_iter().map(|(id, (_, found))| finding(id, found)).collect(), settle)
}

/// How many steps a cause of a message stands behind one that its message names alone. Each place in the pattern is two. What
/// came after the first failure is a step behind it, an echo two, a notice four. Of as many steps that comes first which is
/// named alone, then which is no echo.
fn behind(found: &LogMatch, id: &str, index: usize) -> (usize, bool, usize) {
    let of_maps = id == "max-map-count-exhausted";
    let singled = singled_out(found);
    let alone = singled.map_or(found.causes.len() == 1, |one| one == id);
    let alone = alone || (of_maps && at_default_limit(found));
    let place = match singled {
        _ if alone => 0,
        Some(_) => 2 * index + 3,
        None => 2 * index + 1,
    };
    let kind = match found.kind {
        Kind::Notice => 4,
        Kind::Echo => 2,
        Kind::Failure => usize::from(found.follows),
    };
    let huge = of_maps && found.figures.bytes.is_some_and(|bytes| bytes > HUGE_REQUEST_BYTES);
    (place + kind + if huge { HUGE_REQUEST_STEPS } else { 0 }, !alone, kind)
}

/// The number of torch's segment is that of the kernel's default limit of mappings.
fn at_default_limit(found: &LogMatch) -> bool {
    found
        .figures
        .segment
        .is_some_and(|segment| (NEAR_DEFAULT.0..=NEAR_DEFAULT.1).contains(&of_default(segment)))
}

/// A segment's number, as a share of the mappings that the kernel allows by default.
fn of_default(segment: u64) -> f64 {
    segment as f64 / DEFAULT_MAPPINGS as f64
}

fn finding(id: &'static str, found: &LogMatch) -> Finding {
    let sentence = format!(
        "Line {}, printed by {}: \"{}\".",
        found.line,
        found.emitter,
        found.text.trim_end_matches('.')
    );
    let mut evidence: Vec<Evidence> =
        vec![evidence::text("message", &found.text, evidence::Source::Line(found.line), None, sentence)];
    evidence.extend(segment_sentence(id, found));
    if let Some(hint) = found.hint {
        evidence.push(evidence::text("hint", hint, "known message", None, hint.to_owned()));
    }
    let known = cause(id);
    Finding {
        cause: id.into(),
        title: known.map_or(id, |cause| cause.title).into(),
        headline: known.map_or(id, |cause| cause.title).into(),
        severity: Severity::Fatal,
        proof: Proof::MessageOnly,
        process: None,
        at: None,
        evidence,
        fixes: known.map(Cause::fixes).unwrap_or_default().into_iter().filter(needs_no_recording).collect(),
        explains: Vec::new(),
        beyond_its_process: false,
    }
}

/// A log has no report to read further in.
fn needs_no_recording(fix: &Fix) -> bool {
    !fix.command.starts_with("ullage report")
}

fn segment_sentence(id: &str, found: &LogMatch) -> Option<Evidence> {
    let segment = found.figures.segment.filter(|_| id == "max-map-count-exhausted")?;
    let near = of_default(segment) > NEAR_DEFAULT.0;
    let asked = found.figures.bytes.map_or(String::new(), |bytes| {
        format!(
            " It asked for {}; each segment takes a mapping and a page of 4 KiB (about {} of /dev/shm).",
            evidence::bytes(bytes),
            evidence::bytes(segment.saturating_mul(PAGE_BYTES))
        )
    });
    let sentence = if near {
        format!(
            "The failing segment is number {} of its process; the default limit is just above, at 65,530 mappings.{asked}",
            evidence::count(segment)
        )
    } else {
        format!(
            "The failing segment is number {} of its process; the default limit is 65,530 mappings.{asked}",
            evidence::count(segment)
        )
    };
    Some(evidence::text(
        "number of the segment",
        &segment.to_string(),
        evidence::Source::Line(found.line),
        None,
        sentence,
    ))
}
