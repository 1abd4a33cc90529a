//! What does a person hear of shared memory? How much at its most, of which kinds, who made it, and what is left.
//! Nothing, where there was little and nothing was left.

use super::layout::Screen;
use super::style::{Ink, Style};
use crate::format;
use ullage_model::{LeftBehind, SegmentCreator, SegmentSummary, SegmentTotal};

/// Less than this is worth no line, bytes.
const WORTH_A_LINE: u64 = 16 << 20;
/// Makers named.
const MAKERS_SHOWN: usize = 4;
/// Names told of what was left.
const LEFT_SHOWN: usize = 3;

/// The section.
pub(super) fn segments(screen: &mut Screen, style: Style, summary: &SegmentSummary) {
    let left = summary.left_behind.as_ref().filter(|left| left.total.count > 0);
    let managed = summary.left_behind.as_ref().filter(|left| left.managed.count > 0);
    if left.is_none() && managed.is_none() && summary.total.bytes < WORTH_A_LINE {
        return;
    }
    screen.section("Shared", Ink::Strong);
    if summary.total.bytes >= WORTH_A_LINE {
        let kinds: Vec<String> = {
            let mut kinds: Vec<_> = summary.by_kind.iter().filter(|(_, total)| total.bytes > 0).collect();
            kinds.sort_by_key(|(_, total)| std::cmp::Reverse(total.bytes));
            kinds.iter().map(|(kind, total)| format!("{} {}", kind.word(), amount(**total))).collect()
        };
        let at = format::at(summary.at);
        screen.prose(
            0,
            2,
            &format!(
                "The job's segments, {at}, when most were counted: {}, {}.",
                amount(summary.total),
                kinds.join(", ")
            ),
        );
        let by: Vec<_> = summary.by_creator.iter().filter(|(_, total)| total.bytes > 0).collect();
        let mut makers: Vec<String> = by
            .iter()
            .take(MAKERS_SHOWN)
            .map(|(creator, total)| format!("{} {}", maker(creator), format::bytes(total.bytes)))
            .collect();
        if by.len() > MAKERS_SHOWN {
            makers.push(format!("and {} more", by.len() - MAKERS_SHOWN));
        }
        screen.prose(0, 2, &style.paint(Ink::Quiet, &format!("Made by {}.", makers.join(", "))));
    }
    if let Some(left) = managed {
        screen.prose(0, 2, &format!("Not gone yet: {}.", managed_words(left)));
    }
    if let Some(left) = left {
        screen.prose(0, 2, &left_words(left));
        let command = style.paint(Ink::Code, "ullage check --clean");
        screen.prose(0, 2, &format!("{command} lists what nobody uses, and removes what you confirm."));
    }
}

/// `Left behind, used by nobody: 12 segments, 48 MiB (torch_4711_*, psm_1a2b).`
fn left_words(left: &LeftBehind) -> String {
    let mut names: Vec<String> =
        left.largest.iter().take(LEFT_SHOWN).map(|seen| format::clean(&seen.segment.name)).collect();
    if left.largest.len() > LEFT_SHOWN {
        names.push("…".into());
    }
    format!("Left behind, used by nobody of the job: {} ({}).", amount(left.total), names.join(", "))
}

/// `2 MiB in 1 segment, which torch_shm_manager (pid 4711), still alive, removes by itself`
fn managed_words(left: &LeftBehind) -> String {
    let managers: Vec<String> =
        left.managers.iter().map(|manager| format!("torch_shm_manager (pid {})", manager.id.pid)).collect();
    let verb = if managers.len() == 1 { "removes" } else { "remove" };
    format!("{}, which {}, still alive, {verb} without help", amount(left.managed), managers.join(", "))
}

/// The same in half a line, for a healthy run; none where nothing was left.
pub(super) fn left_behind(summary: &SegmentSummary) -> Option<String> {
    let left = summary.left_behind.as_ref().filter(|left| left.total.count + left.managed.count > 0)?;
    Some(if left.total.count > 0 {
        format!("shared memory, {}: ullage check --clean", amount(left.total))
    } else {
        format!("not gone yet: {}", managed_words(left))
    })
}

/// `48 MiB in 12 segments`.
fn amount(total: SegmentTotal) -> String {
    let what = if total.count == 1 { "segment" } else { "segments" };
    format!("{} in {} {what}", format::bytes(total.bytes), format::count(total.count))
}

fn maker(creator: &SegmentCreator) -> String {
    match creator {
        SegmentCreator::Job { process, ended, .. } => {
            let role = process.role.label();
            let role = if role == "other" { format::clean(&process.name) } else { role };
            let ended = if *ended { ", ended" } else { "" };
            format!("{role} (pid {}{ended})", process.id.pid)
        }
        SegmentCreator::Outside { id, .. } => format!("process {} outside of the job", id.pid),
        SegmentCreator::Gone { pid, .. } => format!("process {pid}, which exited,"),
        SegmentCreator::Unknown(_) => "nobody known".into(),
    }
}
