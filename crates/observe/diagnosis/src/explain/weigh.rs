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
use crate::policy::log::{
    ECHO, FAR_FROM_DEFAULT, FAR_FROM_DEFAULT_LEAVES, FIRST_OF_SEVERAL, FOLLOWING, LARGE_REQUEST_BYTES,
    LARGE_REQUEST_LEAVES, MOST_SURE, NEAR_DEFAULT, NEAR_DEFAULT_MORE, NEXT_OF_SEVERAL, NOTICE,
    NOT_SINGLED_OUT, ONE_CAUSE, SMALL_REQUEST_BYTES, SMALL_REQUEST_MORE,
};
use crate::rule::Cause;
use std::collections::BTreeMap;
use ullage_model::{Evidence, Finding, Severity, Status};

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

/// Causes with their confidence, likeliest first, and the command that settles each.
pub(crate) fn findings(matches: &[LogMatch]) -> (Vec<Finding>, Vec<String>) {
    let mut likely: BTreeMap<&'static str, (f64, &LogMatch)> = BTreeMap::new();
    for found in matches {
        for (index, id) in found.causes.iter().enumerate() {
            let weight = weight(found, id, index);
            let best = likely.entry(id.as_str()).or_insert((weight, found));
            if weight > best.0 {
                *best = (weight, found);
            }
        }
    }
    let mut ranked: Vec<_> = likely.into_iter().collect();
    ranked.sort_by(|a, b| b.1 .0.total_cmp(&a.1 .0).then(a.1 .1.line.cmp(&b.1 .1.line)).then(a.0.cmp(b.0)));
    ranked.truncate(MOST_FINDINGS);
    let settle = ranked.iter().map(|(id, _)| settles(id).to_owned()).collect();
    (ranked.into_iter().map(|(id, (confidence, found))| finding(id, confidence, found)).collect(), settle)
}

/// A segment's number, as a share of the mappings that the kernel allows by default.
fn of_default(segment: u64) -> f64 {
    segment as f64 / DEFAULT_MAPPINGS as f64
}

fn weight(found: &LogMatch, id: &str, index: usize) -> f64 {
    let mut weight = FIRST_OF_SEVERAL * NEXT_OF_SEVERAL.powi(i32::try_from(index).unwrap_or(i32::MAX));
    weight = match singled_out(found) {
        Some(one) if one == id => ONE_CAUSE,
        Some(_) => weight * NOT_SINGLED_OUT,
        None if found.causes.len() == 1 => ONE_CAUSE,
        None => weight,
    };
    if is_notice(found) {
        weight *= NOTICE;
    } else if is_echo(found) {
        weight *= ECHO;
    } else if found.follows {
        weight *= FOLLOWING;
    }
    if id == "max-map-count-exhausted" {
        match found.figures.segment {
            Some(segment) if (NEAR_DEFAULT.0..=NEAR_DEFAULT.1).contains(&of_default(segment)) => {
                weight += NEAR_DEFAULT_MORE;
            }
            Some(segment) if of_default(segment) < FAR_FROM_DEFAULT => weight *= FAR_FROM_DEFAULT_LEAVES,
            _ => {}
        }
        match found.figures.bytes {
            Some(bytes) if bytes < SMALL_REQUEST_BYTES => weight += SMALL_REQUEST_MORE,
            Some(bytes) if bytes > LARGE_REQUEST_BYTES => weight *= LARGE_REQUEST_LEAVES,
            _ => {}
        }
    }
    weight.min(MOST_SURE)
}

fn finding(id: &'static str, confidence: f64, found: &LogMatch) -> Finding {
    let sentence = format!(
        "Line {}, printed by {}: \"{}\".",
        found.line,
        found.emitter,
        found.text.trim_end_matches('.')
    );
    let mut evidence: Vec<Evidence> =
        vec![evidence::text("message", &found.text, &format!("line {}", found.line), None, sentence)];
    evidence.extend(segment_sentence(id, found));
    if let Some(hint) = found.hint {
        let sentence = format!("{}.", evidence::capital(hint.trim_end_matches('.')));
        evidence.push(evidence::text("hint", hint, "catalogue", None, sentence));
    }
    let known = cause(id);
    Finding {
        cause: id.into(),
        title: known.map_or(id, |cause| cause.title).into(),
        severity: Severity::Fatal,
        confidence: (confidence * 100.0).round() / 100.0,
        status: Status::Hypothesis,
        process: None,
        at: None,
        evidence,
        fixes: known.map(Cause::fixes).unwrap_or_default(),
        explains: Vec::new(),
    }
}

fn segment_sentence(id: &str, found: &LogMatch) -> Option<Evidence> {
    let segment = found.figures.segment.filter(|_| id == "max-map-count-exhausted")?;
    let near = of_default(segment) > NEAR_DEFAULT.0;
    let asked = found.figures.bytes.map_or(String::new(), |bytes| {
        format!(" It asked for {} only: each segment takes one mapping and a page of 4 KiB, however small it is, so that /dev/shm shows about {}.", evidence::bytes(bytes), evidence::bytes(segment.saturating_mul(PAGE_BYTES)))
    });
    let sentence = if near {
        format!(
            "The failing segment is number {} of its process, just below the 65,530 mappings that the kernel allows to one process by default.{asked}",
            evidence::count(segment)
        )
    } else {
        format!("The failing segment is number {} of its process; the kernel's default allows 65,530 mappings.{asked}", evidence::count(segment))
    };
    Some(evidence::text(
        "number of the segment",
        &segment.to_string(),
        &format!("line {}", found.line),
        None,
        sentence,
    ))
}
