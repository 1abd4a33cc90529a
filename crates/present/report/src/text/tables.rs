//! The tables of `ullage runs` and `ullage check`. Their rows are plain data that the caller fills.

use super::layout::Screen;
use super::style::{Ink, Style};
use crate::format;

/// One recording in the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRow {
    /// Name of the run.
    pub run: String,
    /// Seconds since it started; none where that is not known.
    pub age_s: Option<f64>,
    /// Seconds it took; none while it runs, or where ullage was killed.
    pub duration_s: Option<f64>,
    /// How it ended, in a few words: `exit 1`, `SIGKILL`, `running`.
    pub outcome: String,
    /// Id of the first finding, where there is one.
    pub cause: Option<String>,
    /// Bytes on disk.
    pub bytes: Option<u64>,
    /// COMMAND.
    pub command: Vec<String>,
    /// Why it cannot be read, where it cannot.
    pub damage: Option<String>,
}

/// The list of recordings, in the given order; ends with a newline.
pub fn runs(rows: &[RunRow], style: &Style) -> String {
    if rows.is_empty() {
        return "No recordings yet. Make one with: ullage run -- COMMAND...\n".into();
    }
    let mut out = String::new();
    let width = rows.iter().map(|row| row.run.chars().count()).max().unwrap_or(0);
    for row in rows {
        let pad = " ".repeat(width.saturating_sub(row.run.chars().count()));
        let cause = row.cause.as_deref().map(|c| format!(", {}", format::clean(c))).unwrap_or_default();
        let age = row.age_s.map(|s| format!("{} ago", format::duration(s)));
        let took = row.duration_s.map(|s| format!("took {}", format::duration(s)));
        let size = row.bytes.map(format::bytes);
        let figures: Vec<String> = [age, took, size].into_iter().flatten().collect();
        let ending = format!("{}{cause}", format::clean(&row.outcome));
        let ink = if row.cause.is_some() { Ink::Bad } else { Ink::Plain };
        out.push_str(&format!(
            "{}{pad}  {}  {}\n",
            style.paint(Ink::Strong, &format::clean(&row.run)),
            style.paint(ink, &ending),
            style.paint(Ink::Quiet, &figures.join(", ")),
        ));
        let command =
            super::layout::middle_cut(&format::command(&row.command), style.width.saturating_sub(2));
        if !command.is_empty() {
            out.push_str(&format!("  {command}\n"));
        }
        if let Some(damage) = &row.damage {
            out.push_str(&format!("  {}\n", style.paint(Ink::Warn, &format::clean(damage))));
        }
    }
    out.replace(super::style::GLUE, " ")
}

/// How one thing was found by `ullage check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckState {
    /// As it should be.
    Fine,
    /// It may become a limit.
    Warning,
    /// It will go wrong.
    Bad,
    /// It could not be read.
    Unknown,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRow {
    /// How it is.
    pub state: CheckState,
    /// What: `vm.max_map_count`.
    pub what: String,
    /// What was read: `65,530`, or why not.
    pub value: String,
    /// What it means for a job; empty where there is nothing to say.
    pub meaning: String,
    /// Exact command that changes it; empty where there is none.
    pub fix: String,
}

/// What was checked, worst first; ends with a newline.
pub fn check(rows: &[CheckRow], style: &Style) -> String {
    let mut screen = Screen::new(*style);
    let order = [CheckState::Bad, CheckState::Warning, CheckState::Unknown, CheckState::Fine];
    for state in order {
        let (heading, ink) = match state {
            CheckState::Bad => ("Bad", Ink::Bad),
            CheckState::Warning => ("Careful", Ink::Warn),
            CheckState::Unknown => ("Unknown", Ink::Strong),
            CheckState::Fine => ("Fine", Ink::Good),
        };
        screen.section(heading, ink);
        for row in rows.iter().filter(|row| row.state == state) {
            let value = format::clean(&row.value);
            let mut text = format!("{}: {value}", style.paint(Ink::Strong, &format::clean(&row.what)));
            if !row.meaning.is_empty() {
                text.push_str(". ");
                text.push_str(&format::clean(&row.meaning));
            }
            screen.prose(0, 2, &text);
            if state != CheckState::Fine {
                screen.paste(2, &row.fix);
            }
        }
    }
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    let sum = format!(
        "{} checked: {} bad, {} to be careful with, {} unknown, {} fine.",
        rows.len(),
        count(CheckState::Bad),
        count(CheckState::Warning),
        count(CheckState::Unknown),
        count(CheckState::Fine)
    );
    screen.section("Sum", Ink::Strong);
    screen.prose(0, 0, &sum);
    screen.finish()
}
