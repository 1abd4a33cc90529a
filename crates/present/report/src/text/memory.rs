//! Where did the job's memory go? Its peak, its largest parts, who shares it, and what forked workers have copied.

use super::layout::Screen;
use super::style::{Ink, Style};
use crate::format;
use ullage_model::{CopyOnWrite, MemorySummary};

/// Parts told, largest first.
const PARTS_SHOWN: usize = 5;
/// Forked processes told, those that copied most.
const PROCESSES_SHOWN: usize = 3;
/// What is counted in pages and comes to less than one is none, bytes.
const PAGE: u64 = 4096;
/// Copies of less than this share of what was inherited are not told.
const WORTH_REPORTING: f64 = 0.02;

/// Nothing where no pages were looked at: the limits say the rest.
pub(super) fn memory(screen: &mut Screen, style: Style, memory: &MemorySummary) {
    let Some(sharing) = memory.sharing else { return };
    screen.section("Memory", Ink::Strong);
    let error = match memory.error_bytes {
        ..PAGE => String::new(),
        error => format!(" (± {})", format::bytes(error)),
    };
    screen.prose(
        0,
        2,
        &format!("At its peak the job held {}{error}: {}.", format::bytes(memory.peak_bytes), parts(memory)),
    );
    let mut shared = Vec::new();
    for (bytes, how) in
        [(sharing.within_job, "shared within the job"), (sharing.with_others, "shared with others")]
    {
        if bytes >= PAGE {
            shared.push(format!("{} {how}", format::bytes(bytes)));
        }
    }
    let shared = if shared.is_empty() { String::new() } else { format!("{}; ", shared.join(", ")) };
    let source = format!(
        "{shared}{} unexplained. Source: {}.",
        format::share(memory.unexplained_share),
        format::clean(&memory.source)
    );
    screen.prose(0, 2, &style.paint(Ink::Quiet, &source));
    for cow in memory.copy_on_write.iter().filter(|cow| is_worth(cow)).take(PROCESSES_SHOWN) {
        screen.prose(0, 2, &forked(cow));
    }
}

fn parts(memory: &MemorySummary) -> String {
    let mut parts: Vec<(&str, u64)> = memory
        .categories
        .iter()
        .map(|(id, bytes)| (id.as_str(), *bytes))
        .filter(|part| part.1 >= PAGE)
        .collect();
    parts.sort_by_key(|(id, bytes)| (std::cmp::Reverse(*bytes), *id));
    let rest: u64 = parts.iter().skip(PARTS_SHOWN).map(|(_, bytes)| bytes).sum();
    let mut shown: Vec<String> = parts
        .iter()
        .take(PARTS_SHOWN)
        .map(|(id, bytes)| format!("{} {}", format::clean(id), format::bytes(*bytes)))
        .collect();
    if rest > 0 {
        shown.push(format!("other {}", format::bytes(rest)));
    }
    shown.join(", ")
}

fn is_worth(cow: &CopyOnWrite) -> bool {
    let apart = cow.copied.saturating_add(cow.parent_changed).saturating_add(cow.unknown);
    apart as f64 >= WORTH_REPORTING * cow.inherited as f64
}

fn forked(cow: &CopyOnWrite) -> String {
    let mut became = Vec::new();
    for (bytes, how) in [
        (cow.copied, "copied by it"),
        (cow.parent_changed, "rewritten or released by its parent"),
        (cow.unknown, "one or the other"),
    ] {
        if bytes >= PAGE {
            became.push(format!("{} {how}", format::bytes(bytes)));
        }
    }
    let subject = match cow.process.role.label().as_str() {
        "other" => "A forked process".to_owned(),
        role => format!("The {role}"),
    };
    format!(
        "{subject} ({}, pid {}) began with {} of its parent's and still shares {}; {} (± {}).",
        format::clean(&cow.process.name),
        cow.process.id.pid,
        format::bytes(cow.inherited),
        format::bytes(cow.shared),
        became.join(", "),
        format::bytes(cow.error)
    )
}
