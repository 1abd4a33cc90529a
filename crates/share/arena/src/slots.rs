//! Which processes take part, and are they still alive? A pid and its start, in the header's table.
//!
//! Read from `/proc/PID/stat`. The surprise: a slot is used again only after 16,383 others, so that the few blocks
//! whose retainer died between two instructions keep a retainer that is known to be dead.

use crate::error::ArenaError;
use crate::layout::{Header, SLOTS};
use rustix::io::Errno;
use rustix::process::{test_kill_process, Pid};
use std::sync::atomic::Ordering;

/// Takes a slot for this process.
pub(crate) fn claim(header: &Header) -> Result<u16, ArenaError> {
    let pid = std::process::id();
    let start = stat_of(pid).map_or(0, |stat| stat.start);
    // Slots of the dead only where no free one is left.
    for of_the_dead in [false, true] {
        for (index, slot) in header.slots.iter().enumerate().skip(1) {
            let found = slot.pid.load(Ordering::Acquire);
            let wanted = if of_the_dead { !is_alive(header, index as u16) } else { found == 0 };
            if wanted && slot.pid.compare_exchange(found, pid, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                slot.start.store(start, Ordering::Release);
                return Ok(index as u16);
            }
        }
    }
    Err(ArenaError::TableFull { what: "process", most: SLOTS - 1 })
}

/// pid of a slot; zero for nobody.
pub(crate) fn pid(header: &Header, slot: u16) -> u32 {
    header.slots.get(usize::from(slot)).map_or(0, |slot| slot.pid.load(Ordering::Acquire))
}

/// True where the process of a slot still lives (or could not be told from one that does).
pub(crate) fn is_alive(header: &Header, slot: u16) -> bool {
    let Some(entry) = header.slots.get(usize::from(slot)) else { return false };
    let (pid, start) = (entry.pid.load(Ordering::Acquire), entry.start.load(Ordering::Acquire));
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(process) == Err(Errno::SRCH) {
        return false;
    }
    // Whom /proc hides from us (hidepid) is taken for alive: a block too many beats one that is read by two.
    match stat_of(pid) {
        None => true,
        Some(Stat { zombie: true, .. }) => false,
        // Zero: just claimed, or it could not read its own.
        Some(found) => start == 0 || found.start == start,
    }
}

/// What `/proc/PID/stat` says.
pub(crate) struct Stat {
    pub(crate) zombie: bool,
    /// Clock ticks since boot.
    pub(crate) start: u64,
}

/// None where there is nothing to read.
pub(crate) fn stat_of(pid: u32) -> Option<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold blanks and parentheses: the last one ends it.
    let after = &text[text.iter().rposition(|byte| *byte == b')')? + 1..];
    let mut fields = after.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let zombie = matches!(fields.next()?, b"Z" | b"X");
    // Field 22; the state was field 3.
    let start = std::str::from_utf8(fields.nth(18)?).ok()?.trim().parse().ok()?;
    Some(Stat { zombie, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_a_child_that_ended_does_not() {
        let own = stat_of(std::process::id()).unwrap();
        assert!(!own.zombie && own.start > 0);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(stat_of(child.id()).is_none());
    }
}
