//! Which of many regular expressions can match a line at all? Those of which a string that each of their matches must
//! have stands in it. All of these strings are looked for at once, so that a line of a log, which mostly has none, costs
//! one pass however many expressions there are.

use crate::policy::log::{LONG_ENOUGH_WORD, SHORTEST_WORD};
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex_syntax::hir::{Class, Hir, HirKind};

/// Strings to look for, and whose they are.
pub(crate) struct Prefilter {
    strings: AhoCorasick,
    /// By string: the expression that it belongs to.
    owner: Vec<usize>,
    /// Expressions without such a string, which can match any line.
    pub(crate) always: Vec<usize>,
}

impl Prefilter {
    /// For these expressions, known by their position.
    pub(crate) fn new(expressions: &[&str]) -> Prefilter {
        let (mut strings, mut owner, mut always) = (Vec::new(), Vec::new(), Vec::new());
        for (index, expression) in expressions.iter().enumerate() {
            match regex_syntax::parse(expression).ok().and_then(|hir| required(&hir)) {
                Some(these) => {
                    owner.extend(std::iter::repeat_n(index, these.len()));
                    strings.extend(these);
                }
                None => always.push(index),
            }
        }
        let strings = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&strings)
            .expect("the embedded patterns are compiled by the tests");
        Prefilter { strings, owner, always }
    }

    /// Sets `found` to the expressions that can match, in order.
    pub(crate) fn candidates(&self, text: &str, found: &mut Vec<usize>) {
        found.clear();
        found.extend_from_slice(&self.always);
        found
            .extend(self.strings.find_overlapping_iter(text).map(|hit| self.owner[hit.pattern().as_usize()]));
        found.sort_unstable();
        found.dedup();
    }
}

/// Strings of which each match has one at least, letters small; none where there are no such.
fn required(hir: &Hir) -> Option<Vec<String>> {
    if let Some(exact) = exact(hir) {
        return usable(vec![exact]);
    }
    match hir.kind() {
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Alternation(branches) => {
            let each: Option<Vec<_>> = branches.iter().map(required).collect();
            usable(each?.concat())
        }
        HirKind::Concat(parts) => {
            let mut best = None;
            let mut run = String::new();
            for part in parts {
                match exact(part) {
                    Some(text) => run.push_str(&text),
                    None => {
                        better(&mut best, usable(vec![std::mem::take(&mut run)]));
                        better(&mut best, required(part));
                    }
                }
            }
            better(&mut best, usable(vec![run]));
            best
        }
        _ => None,
    }
}

/// The only text that it matches, but for the size of letters; empty for what matches a place and no text.
fn exact(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(String::new()),
        HirKind::Literal(literal) => Some(std::str::from_utf8(&literal.0).ok()?.to_ascii_lowercase()),
        HirKind::Class(Class::Unicode(class)) => {
            // Where the size of letters does not count, `k` stands for the sign of Kelvin too: nobody prints that.
            let mut ascii = class.ranges().iter().filter(|range| range.start().is_ascii());
            let first = ascii.next()?.start().to_ascii_lowercase();
            let letter =
                class.ranges().len() <= 3
                    && class.ranges().iter().filter(|range| range.start().is_ascii()).all(|range| {
                        range.start() == range.end() && range.start().to_ascii_lowercase() == first
                    });
            letter.then(|| first.to_string())
        }
        HirKind::Capture(capture) => exact(&capture.sub),
        HirKind::Concat(parts) => parts.iter().map(exact).collect(),
        _ => None,
    }
}

fn usable(strings: Vec<String>) -> Option<Vec<String>> {
    // Lines are looked at one by one.
    (!strings.is_empty() && strings.iter().all(|text| text.len() >= SHORTEST_WORD && !text.contains('\n')))
        .then_some(strings)
}

/// Keeps the strings of which the shortest is longer, or which are fewer.
fn better(best: &mut Option<Vec<String>>, next: Option<Vec<String>>) {
    let worth = |strings: &Vec<String>| {
        let shortest = strings.iter().map(String::len).min().unwrap_or(0);
        (shortest.min(LONG_ENOUGH_WORD), std::cmp::Reverse(strings.len()))
    };
    if next.as_ref().map(worth) > best.as_ref().map(worth) {
        *best = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(expression: &str) -> Option<Vec<String>> {
        required(&regex_syntax::parse(expression).unwrap())
    }

    #[test]
    fn the_longest_string_that_must_be_there_is_taken() {
        let one = |text: &str| Some(vec![text.to_owned()]);
        assert_eq!(of("Cannot allocate memory"), one("cannot allocate memory"));
        assert_eq!(of(r"(?i)\bkilled\b \d+ (?:now)"), one("killed "));
        assert_eq!(of(r"a+(?P<n>\d+) bytes from file <"), one(" bytes from file <"));
        assert_eq!(of("foo|barn"), Some(vec!["foo".into(), "barn".into()]));
        assert_eq!(of(r"x(?:ab|cd)+y?"), Some(vec!["ab".into(), "cd".into()]));
        assert_eq!(of(r"\w+ \d*"), None);
        assert_eq!(of("(?:long enough)?"), None);
        assert_eq!(of("foo|[xy]"), None);
    }

    proptest! {
        #[test]
        fn what_matches_is_a_candidate(
            expression in prop::sample::select(vec![r"(?i)ab+c|\bde", r"(?:xy|z[ab]c)\d", r"(?:ab)?cd+", "a.b|c(?:d|e)f"]),
            text in "[abcdexyzABCDEXYZ1 .]{0,12}",
        ) {
            let mut found = Vec::new();
            Prefilter::new(&[expression]).candidates(&text, &mut found);
            prop_assert!(found == [0] || !regex::Regex::new(expression).unwrap().is_match(&text));
        }
    }
}
