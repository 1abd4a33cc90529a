//! What can be said of a log with no recording: which known messages stand in it, which of them came first, and
//! which causes are consistent with them. Never more than a hypothesis; each with the command that settles it.
//!
//! Reads a line at a time in bounded memory: a log may have gigabytes, lines without end, and bytes that are
//! no UTF-8. The expressions are compiled once.

mod error;
mod lines;
mod log_match;
pub(crate) mod messages;
mod prefilter;
mod unrelated_failures;
mod weigh;
mod words;

pub use error::LogError;
use lines::Lines;
pub use log_match::LogMatch;
use log_match::{Doing, Figures};
use messages::{messages, Message};
use prefilter::Prefilter;
use regex::{Regex, RegexBuilder};
use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::OnceLock;
use ullage_model::Finding;
pub use unrelated_failures::repeats_another;
use unrelated_failures::Others;

/// Matches kept: the first ones tell the cause, and a log repeats itself.
const MOST_MATCHES: usize = 200;
/// Of one pattern.
const MOST_MATCHES_EACH: u32 = 8;
/// Bytes kept of a line for those.
const MOST_BYTES: usize = 2000;
/// Lines that a message of several lines may span; looked at twice as wide, half of it anew each time.
const MOST_LINES: usize = 8;

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
    /// The first line that says that the memory of a GPU ran out: no cause of ours, and the one that people ask about.
    pub gpu_out_of_memory_line: Option<u64>,
}

impl LogVerdict {
    /// The message that came first and does not report another's failure.
    pub fn first_failure(&self) -> Option<&LogMatch> {
        self.matches.iter().find(|found| !found.follows)
    }
}

struct Compiled {
    /// Of the messages first, then of what [`Others`] looks for.
    prefilter: Prefilter,
    /// Numbers of the messages of several lines.
    spanning: Vec<usize>,
    each: Vec<Regex>,
}

fn compiled() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let all: Vec<&str> = messages().iter().map(|message| message.regex.as_str()).collect();
        let each = all.iter().map(|regex| build(regex)).collect();
        let spanning = all
            .iter()
            .enumerate()
            .filter(|(_, regex)| regex.starts_with("(?s)"))
            .map(|(index, _)| index)
            .collect();
        let wanted: Vec<&str> = all.into_iter().chain(unrelated_failures::PATTERNS).collect();
        Compiled { prefilter: Prefilter::new(&wanted), spanning, each }
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
    let mut found = Found { matches: Vec::new(), seen: vec![0; messages().len()] };
    let mut others = Others::default();
    let mut window: VecDeque<(u64, String)> = VecDeque::with_capacity(2 * MOST_LINES);
    // By message: how many lines were kept when it was last possible.
    let mut possible_at: Vec<Option<u64>> = vec![None; messages().len()];
    let (mut stored, mut candidates, mut known) = (0u64, Vec::new(), Vec::new());
    while let Some(line) = lines.next_line()? {
        compiled.prefilter.candidates(line.text, &mut candidates);
        known.clear();
        let mut is_known = false;
        let messages = candidates.partition_point(|index| *index < compiled.each.len());
        for &index in &candidates[..messages] {
            possible_at[index] = Some(stored);
            if found.seen[index] >= MOST_MATCHES_EACH {
                // A log that repeats itself: that its string stands there is enough.
                is_known = true;
            } else if compiled.each[index].is_match(line.text) {
                known.push(index);
            }
        }
        if messages < candidates.len() || others.in_a_traceback(line.number) {
            others.line(line.number, line.text, is_known || !known.is_empty());
        }
        for &index in &known {
            let noted = note(&mut found, index, line.number, line.text, &compiled.each[index]);
            if let Some(noted) = noted {
                (noted.doing, noted.explained) = (words::doing(&window), others.led_to(line.number));
            }
        }
        if line.overwritten {
            continue;
        }
        let mut text = match window.len() {
            n if n == 2 * MOST_LINES => window.pop_front().map(|(_, text)| text).unwrap_or_default(),
            _ => String::new(),
        };
        text.clear();
        text.push_str(beginning(line.text, MOST_BYTES));
        window.push_back((line.number, text));
        stored += 1;
        if stored.is_multiple_of(MOST_LINES as u64) {
            match_spanning(compiled, &window, &mut found, |index| recent(possible_at[index], stored));
        }
    }
    match_spanning(compiled, &window, &mut found, |index| recent(possible_at[index], stored));
    let number = lines.count();
    let mut matches = found.matches;
    matches.sort_by_key(|found| found.line);
    weigh::mark_what_follows(&mut matches, &others);
    let (findings, settle) = weigh::findings(&matches);
    let gpu_out_of_memory_line = others.gpu_out_of_memory_line;
    Ok(LogVerdict { lines: number, matches, findings, settle, gpu_out_of_memory_line })
}

/// So many bytes of a text at most, and whole characters.
fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whether one of the lines of the window made a message possible.
fn recent(possible_at: Option<u64>, stored: u64) -> bool {
    possible_at.is_some_and(|at| at + 2 * MOST_LINES as u64 >= stored)
}

/// What was found by now, and how often each message.
struct Found {
    matches: Vec<LogMatch>,
    seen: Vec<u32>,
}

impl Found {
    /// Whether one more of this message would be noted.
    fn wants(&self, index: usize) -> bool {
        self.seen[index] < MOST_MATCHES_EACH && self.matches.len() < MOST_MATCHES
    }
}

fn match_spanning(
    compiled: &Compiled,
    window: &VecDeque<(u64, String)>,
    found: &mut Found,
    possible: impl Fn(usize) -> bool,
) {
    let mut text = String::new();
    for index in compiled.spanning.iter().filter(|index| possible(**index)) {
        if !found.wants(*index) {
            continue;
        }
        if text.is_empty() {
            text = window.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n");
        }
        let regex = &compiled.each[*index];
        if let Some(span) = regex.find(&text) {
            let before = text[..span.end()].matches('\n').count();
            let line = window.get(before).map_or(0, |(number, _)| *number);
            let here = text[span.range()].lines().last().unwrap_or_default();
            let id = &messages()[*index].id;
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
    if found.seen[index] > MOST_MATCHES_EACH || found.matches.len() >= MOST_MATCHES {
        return None;
    }
    let message: &'static Message = &messages()[index];
    found.matches.push(LogMatch {
        line,
        pattern: &message.id,
        emitter: &message.emitter,
        text: text.trim().chars().take(300).collect(),
        hint: message.hint.as_deref(),
        follows: false,
        kind: message.kind,
        causes: &message.causes,
        figures: Figures::of(regex, text),
        doing: Doing::default(),
        explained: false,
    });
    found.matches.last_mut()
}

#[cfg(test)]
mod tests {
    use super::{compiled, messages};

    fn candidates(text: &str) -> Vec<usize> {
        let mut found = Vec::new();
        compiled().prefilter.candidates(text, &mut found);
        found
    }

    #[test]
    fn ordinary_lines_are_held_against_no_pattern() {
        for line in [
            "  File \"/x/y.py\", line 3, in f",
            "    return self.forward(batch)",
            "step 1501 loss 2.269 lr 0.0003 tokens/s 18234",
            "[2026-11-22 10:11:12,123][trainer][INFO] - epoch 3: accuracy 0.91",
            " 45%|████▌     | 450/1000 [00:12<00:15, 35.8it/s]",
        ] {
            assert_eq!(candidates(line), [], "{line}");
        }
    }

    #[test]
    fn each_message_is_possible_where_it_stands() {
        for (index, message) in messages().iter().enumerate() {
            assert!(candidates(&message.example).contains(&index), "{}", message.id);
        }
    }
}
