//! What does a person see of `ullage check --clean`: what dead processes left, why it is known to be unused, and what
//! could not be known. The rows are plain data that the caller fills.

use super::layout::Screen;
use super::style::{Ink, Style};
use crate::format;

/// Orphans told one by one.
const SHOWN: usize = 20;
/// Unused ones that are kept, told one by one.
const RETAINED_SHOWN: usize = 5;

/// One segment.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftoverRow {
    /// Path, or `shmid 5 (key 0x1234)`.
    pub what: String,
    /// Pages that it holds.
    pub bytes: u64,
    /// Seconds since it was made.
    pub age_s: f64,
    /// Why it is an orphan, or why it is kept.
    pub because: String,
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeftoverList {
    /// What may be removed, in the order of their numbers.
    pub orphans: Vec<LeftoverRow>,
    /// Unused, and kept.
    pub retained: Vec<LeftoverRow>,
    /// Number and bytes of what was left alone, and what it is.
    pub alone: Vec<(u64, u64, String)>,
    /// What could not be known, one sentence each.
    pub cannot_know: Vec<String>,
}

/// The list; ends with a newline.
pub fn leftovers(list: &LeftoverList, style: &Style) -> String {
    let mut screen = Screen::new(*style);
    screen.section("Orphans", if list.orphans.is_empty() { Ink::Good } else { Ink::Warn });
    if list.orphans.is_empty() {
        screen.prose(0, 0, "None: no segment of yours was left by a dead process.");
    }
    for (number, row) in (1..).zip(list.orphans.iter().take(SHOWN)) {
        screen.prose(0, 4, &line(*style, Some(number), row));
    }
    if list.orphans.len() > SHOWN {
        let rest = &list.orphans[SHOWN..];
        let bytes = rest.iter().map(|row| row.bytes).sum();
        let text = format!("and {} more, {}", format::count(rest.len() as u64), format::bytes(bytes));
        screen.prose(4, 0, &style.paint(Ink::Quiet, &text));
    }
    screen.section("Kept", Ink::Strong);
    for row in list.retained.iter().take(RETAINED_SHOWN) {
        screen.prose(0, 2, &line(*style, None, row));
    }
    if list.retained.len() > RETAINED_SHOWN {
        screen.prose(
            0,
            0,
            &style.paint(Ink::Quiet, &format!("and {} more", list.retained.len() - RETAINED_SHOWN)),
        );
    }
    for (count, bytes, what) in list.alone.iter().filter(|(count, ..)| *count > 0) {
        let text = format!("{} {what}, {}: left alone.", format::count(*count), format::bytes(*bytes));
        screen.prose(0, 2, &style.paint(Ink::Quiet, &text));
    }
    screen.section("Not seen", Ink::Strong);
    for sentence in &list.cannot_know {
        screen.prose(0, 2, &format::clean(sentence));
    }
    screen.finish()
}

fn line(style: Style, number: Option<usize>, row: &LeftoverRow) -> String {
    let number = number.map(|number| format!("{number:>2}. ")).unwrap_or_default();
    let what = style.paint(Ink::Strong, &format::clean(&row.what));
    let figures = format!("{}, {} old", format::bytes(row.bytes), format::duration(row.age_s));
    format!("{number}{what}: {figures}; {}.", format::clean(&row.because))
}
