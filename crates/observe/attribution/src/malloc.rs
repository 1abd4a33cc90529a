//! How much of malloc's heap and arenas is in use, and how much is free and kept? From what the agent was told by glibc
//! in each process, at about the moment of the survey.
//!
//! The surprise: free chunks may have no pages (after a `malloc_trim`), so that what is in use is filled in first, and
//! free is what is left of the resident bytes. A heap of another allocator is in no figure of glibc's, and stays untold.

use crate::lives::Lives;
use crate::parts::Parts;
use crate::surveyed::{Own, Surveyed};
use ullage_model::{PageKind, ProcessId};

const IN_USE: &str = "malloc-in-use";
const FREED: &str = "malloc-freed-but-held";
/// What was said when a process held this much more or less than at the survey is no figure of that moment: bytes, or share.
const APART: u64 = 16 << 20;
const APART_SHARE: f64 = 0.1;

/// Splits the category of malloc's heap, by the part of it that each process has: what nobody told of keeps its name.
pub(crate) fn split(parts: &mut Parts, surveyed: &Surveyed, lives: &Lives) {
    let Some(whole) = parts.by_id.get(PageKind::Malloc.id()).copied() else { return };
    let (mut all, mut in_use, mut free) = (0.0, 0.0, 0.0);
    for (id, own) in surveyed.own.iter().filter(|(_, own)| own.malloc > 0) {
        let part = own.malloc_part as f64;
        all += part;
        if let Some((of_use, of_free)) = shares(*id, own, lives) {
            in_use += part * of_use;
            free += part * of_free;
        }
    }
    let of = |bytes: f64| if all > 0.0 { (whole as f64 * bytes / all) as u64 } else { 0 };
    let in_use = of(in_use).min(whole);
    let free = of(free).min(whole - in_use);
    if in_use + free == 0 {
        return;
    }
    parts.by_id.remove(PageKind::Malloc.id());
    for (id, bytes) in [(IN_USE, in_use), (FREED, free), (PageKind::Malloc.id(), whole - in_use - free)] {
        parts.add(id, bytes);
    }
}

/// Of the resident bytes of a process's heap and arenas, those in use and those that are free.
fn shares(id: ProcessId, own: &Own, lives: &Lives) -> Option<(f64, f64)> {
    let (then, reported) = lives.get(id)?.malloc?;
    let surveyed = own.reading.anonymous;
    if then.abs_diff(surveyed) > APART.max((APART_SHARE * surveyed as f64) as u64) {
        return None;
    }
    let resident = own.malloc as f64;
    let in_use = reported.used.min(resident);
    Some((in_use / resident, reported.free.min(resident - in_use) / resident))
}
