//! What can be said of a log with no recording: which known messages stand in it, which of them came first, and
//! which causes are consistent with them. Never more than a hypothesis; each with the command that settles it.
//!
//! Reads a line at a time in bounded memory: a log may have gigabytes, lines without end, and bytes that are
//! no UTF-8. The message catalogue is compiled once.

mod lines;
mod others;
pub(crate) mod weigh;
mod words;

use crate::catalogue::{patterns, Pattern};
use lines::Lines;
use others::Others;
use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::OnceLock;
use ullage_model::Finding;

/// Matches kept: the first ones tell the cause, and a log repeats itself.
const MATCHES: usize = 200;
/// Of one pattern.
const MATCHES_EACH: u32 = 8;
/// Lines that a message of several lines may span; looked at twice as wide, half of it anew each time.
const SPAN: usize = 8;

/// Why a log could not be explained.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Not a text.
    #[error("this is not a text: byte {at} is zero, as in a program, an archive or a core dump; give the text that the job printed (`2>&1 | tee train.log`)")]
    NotText {
        /// Offset of the first zero byte.
        at: u64,
    },
    /// It could not be read to its end.
    #[error("the log could not be read beyond line {line}: {source}")]
    Read {
        /// Lines read so far.
        line: u64,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A known message in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogMatch {
    /// Line number, from 1.
    pub line: u64,
    /// Id of the message in errors.yaml.
    pub pattern: &'static str,
    /// Who prints it.
    pub emitter: &'static str,
    /// The line, at most 300 characters.
    pub text: String,
    /// What to look at next, where the catalogue knows.
    pub hint: Option<&'static str>,
    /// It reports an earlier failure of something else, or comes after the first one.
    pub follows: bool,
    /// Causes that it is consistent with, likeliest first.
    pub(crate) causes: &'static [String],
    pub(crate) figures: weigh::Figures,
    pub(crate) doing: words::Doing,
    /// A failure of another kind stands shortly before it.
    pub(crate) explained: bool,
}

/// What a log tells.
#[derive(Clone, Debug, PartialEq)]
pub struct LogVerdict {
    /// Lines read.
    pub lines: u64,
    /// Known messages, in order.
    pub matches: Vec<LogMatch>,
    /// Consistent causes, likeliest first; status always hypothesis.
    pub findings: Vec<Finding>,
    /// Per finding, the exact command that would settle it.
    pub settle: Vec<String>,
}

impl LogVerdict {
    /// The message that came first and does not report another's failure.
    pub fn first_failure(&self) -> Option<&LogMatch> {
        self.matches.iter().find(|found| !found.follows)
    }
}

struct Compiled {
    single: RegexSet,
    spanning: Vec<(usize, Regex)>,
    each: Vec<Regex>,
}

fn compiled() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let all: Vec<&str> = patterns().iter().map(|pattern| pattern.regex.as_str()).collect();
        let each = all.iter().map(|regex| build(regex)).collect();
        let spanning = all
            .iter()
            .enumerate()
            .filter(|(_, regex)| regex.starts_with("(?s)"))
            .map(|(index, regex)| (index, build(regex)))
            .collect();
        let single = RegexSetBuilder::new(&all)
            .size_limit(64 << 20)
            .build()
            .expect("the embedded patterns are compiled by the tests");
        Compiled { single, spanning, each }
    })
}

fn build(regex: &str) -> Regex {
    RegexBuilder::new(regex)
        .size_limit(64 << 20)
        .build()
        .expect("the embedded patterns are compiled by the tests")
}

/// Explains a log.
///
/// # Errors
/// Where it is no text, or cannot be read; what was matched before is lost with it, because half a log names
/// the wrong failure first.
pub fn explain_log(reader: impl BufRead) -> Result<LogVerdict, LogError> {
    let compiled = compiled();
    let mut lines = Lines::new(reader);
    let mut found = Found { matches: Vec::new(), seen: vec![0; patterns().len()] };
    let mut others = Others::default();
    let mut window: VecDeque<(u64, String)> = VecDeque::with_capacity(2 * SPAN);
    let mut since_look = 0;
    while let Some(line) = lines.next_line()? {
        let known = compiled.single.matches(line.text);
        others.line(line.number, line.text, known.matched_any());
        for index in known {
            let told = note(&mut found, index, line.number, line.text, &compiled.each[index]);
            if let Some(told) = told {
                (told.doing, told.explained) = (words::doing(&window), others.led_to(line.number));
            }
        }
        if line.overwritten {
            continue;
        }
        if window.len() == 2 * SPAN {
            window.pop_front();
        }
        window.push_back((line.number, line.text.chars().take(2000).collect()));
        since_look += 1;
        if since_look == SPAN {
            look_back(compiled, &window, &mut found);
            since_look = 0;
        }
    }
    look_back(compiled, &window, &mut found);
    let number = lines.count();
    let mut matches = found.matches;
    matches.sort_by_key(|found| found.line);
    weigh::mark_what_follows(&mut matches, &others);
    let (findings, settle) = weigh::findings(&matches);
    Ok(LogVerdict { lines: number, matches, findings, settle })
}

/// What was found by now, and how often each message.
struct Found {
    matches: Vec<LogMatch>,
    seen: Vec<u32>,
}

fn look_back(compiled: &Compiled, window: &VecDeque<(u64, String)>, found: &mut Found) {
    let text = window.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
    for (index, regex) in &compiled.spanning {
        if let Some(span) = regex.find(&text) {
            let before = text[..span.end()].matches('\n').count();
            let line = window.get(before).map_or(0, |(number, _)| *number);
            let here = text[span.range()].lines().last().unwrap_or_default();
            let id = &patterns()[*index].id;
            if !found.matches.iter().any(|known| known.line == line && known.pattern == id) {
                note(found, *index, line, here, regex);
            }
        }
    }
}

/// A message that stands on a line; none where it was noted often enough.
fn note<'a>(
    found: &'a mut Found,
    index: usize,
    line: u64,
    text: &str,
    regex: &Regex,
) -> Option<&'a mut LogMatch> {
    found.seen[index] += 1;
    if found.seen[index] > MATCHES_EACH || found.matches.len() >= MATCHES {
        return None;
    }
    let pattern: &'static Pattern = &patterns()[index];
    found.matches.push(LogMatch {
        line,
        pattern: &pattern.id,
        emitter: &pattern.emitter,
        text: text.trim().chars().take(300).collect(),
        hint: pattern.hint.as_deref(),
        follows: false,
        causes: &pattern.causes,
        figures: weigh::Figures::of(regex, text),
        doing: words::Doing::default(),
        explained: false,
    });
    found.matches.last_mut()
}
