//! What does a bare log tell? Findings from messages alone, each with the line it rests on.

use super::layout::Screen;
use super::style::{Ink, Style};
use super::verdict::known;
use crate::format;
use ullage_model::{Finding, Status};

/// What `ullage explain FILE` found in a log.
#[derive(Clone, Copy, Debug)]
pub struct LogView<'a> {
    /// Name of the file, or `standard input`.
    pub source: &'a str,
    /// Lines read.
    pub lines: u64,
    /// Findings, most likely first. Their evidence quotes the lines.
    pub findings: &'a [Finding],
    /// What else is to be said: the file was cut, bytes were not text. One sentence each.
    pub notes: &'a [String],
}

/// Candidates told after the first.
const OTHERS_SHOWN: usize = 3;

/// What a log says, for a screen; ends with a newline.
pub fn log(log: &LogView<'_>, style: &Style) -> String {
    let mut screen = Screen::new(*style);
    let lines = if log.lines == 1 { "1 line".into() } else { format!("{} lines", format::count(log.lines)) };
    let read = format!("{} ({lines} read)", format::clean(log.source));
    let Some(first) = log.findings.first() else {
        screen.section("Verdict", Ink::Strong);
        screen.prose(0, 0, &style.paint(Ink::Strong, "No message of a known memory cause was found."));
        screen.prose(0, 0, &format!("In {read}."));
        screen.section("Do", Ink::Strong);
        screen.prose(0, 0, "Run the job once more under ullage: a recording tells more than a log.");
        screen.code(3, "ullage run -- COMMAND...");
        notes(&mut screen, log.notes);
        return screen.finish();
    };
    screen.section("Verdict", Ink::Bad);
    screen.prose(0, 0, &style.paint(Ink::Bad, &format::clean(&first.title)));
    screen.prose(0, 0, &format!("{}, {}.", format::clean(&first.cause), known(first.proof)));
    screen.prose(0, 0, &format!("From {read}."));
    screen.section("Why", Ink::Strong);
    for evidence in &first.evidence {
        let sentence = format::clean(&evidence.sentence);
        let source = format::clean(&evidence.source.to_string());
        screen.prose(0, 2, &format!("{sentence} {}", style.paint(Ink::Quiet, &format!("[{source}]"))));
        if !evidence.said {
            screen.code(2, &format::reading(&evidence.value, evidence.limit));
        }
    }
    screen.section("Do", Ink::Strong);
    for (i, fix) in first.fixes.iter().enumerate() {
        screen.prose(0, 3, &format!("{}. {}", i + 1, format::clean(&fix.title)));
        screen.paste(3, &fix.command);
    }
    if first.status() != Status::Established {
        let n = first.fixes.len() + 1;
        screen.prose(
            0,
            3,
            &format!(
                "{n}. To be sure, run the job once more under ullage: it counts what the log does not tell"
            ),
        );
        screen.code(3, "ullage run -- COMMAND...");
    }
    screen.section("Or else", Ink::Strong);
    for other in log.findings.iter().skip(1).take(OTHERS_SHOWN) {
        let tag = format!("[{}]", format::clean(&other.cause));
        screen.prose(0, 2, &format!("{} {}", format::clean(&other.title), style.paint(Ink::Quiet, &tag)));
    }
    notes(&mut screen, log.notes);
    screen.finish()
}

fn notes(screen: &mut Screen, notes: &[String]) {
    screen.section("Note", Ink::Strong);
    for note in notes {
        screen.prose(0, 2, &format::clean(note));
    }
}
