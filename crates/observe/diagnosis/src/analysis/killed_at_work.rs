//! What was a process doing that the kernel killed for lack of memory? The agent says where the threads of a program are when
//! much memory has come; a kill leaves no traceback.
//!
//! The surprise: a program is always in the midst of something, and most of it is no reason. So a piece of work counts only
//! where it was under way at each of the last moments that were told, and most of what the process held came meanwhile; not
//! where a loader fetches a sample by it, which it does all the time; and in another thread than the main one only where that
//! one waits, since nobody knows otherwise which of the two the memory came to.

use super::failures::Failure;
use super::oom::Victim;
use crate::history::{ProcessHistory, Timeline};
use crate::policy::limits::LAST_SECONDS_S;
use crate::policy::sizes::MOST;
use ullage_model::At;

/// A process that was killed, or beside which another one was that does the same.
pub(crate) struct KilledAtWork<'a> {
    /// The kill as a failure that has the functions.
    pub(crate) failure: Failure<'a>,
    pub(crate) process: &'a ProcessHistory,
    /// Bytes that came meanwhile, and that it held.
    pub(crate) came: f64,
    pub(crate) held: f64,
    /// Bytes that came to others, each in the midst of the same.
    pub(crate) elsewhere: f64,
}

/// The first kill in the midst of a piece of work.
pub(crate) fn killed_at_work<'a>(
    timeline: &'a Timeline,
    victims: &[Victim<'a>],
    at_work: impl Fn(&Failure) -> bool,
) -> Option<KilledAtWork<'a>> {
    victims.iter().find_map(|victim| {
        let killed = victim.process?;
        let same = |process: &&ProcessHistory| {
            process.id != killed.id
                && std::mem::discriminant(&process.role) == std::mem::discriminant(&killed.role)
                && (process.first_seen..=process.last_seen).contains(&victim.last_read_before())
        };
        let all = std::iter::once(killed).chain(timeline.processes().filter(same));
        let mut at_it = all.filter_map(|process| in_the_midst(process, victim.at, &at_work));
        let first = at_it.next()?;
        Some(KilledAtWork { elsewhere: at_it.map(|one| one.came).sum(), ..first })
    })
}

fn in_the_midst<'a>(
    process: &'a ProcessHistory,
    kill: At,
    at_work: &impl Fn(&Failure) -> bool,
) -> Option<KilledAtWork<'a>> {
    let works: Vec<_> = process.works.iter().filter(|(at, _)| *at <= kill).collect();
    let failure = |at: At, stack: &'a Vec<String>| {
        let failure = Failure {
            at,
            process: Some(process),
            exception: None,
            stack,
            ending: process.ended.map(|end| end.1),
            follows: false,
        };
        let fetches = failure.passes("torch/utils/data/_utils/fetch.py");
        (!fetches && at_work(&failure)).then_some(failure)
    };
    let during = |(at, stacks): &&'a (At, Vec<Vec<String>>)| {
        let main_waits = stacks.first().is_some_and(|stack| waits(stack));
        let count = if main_waits { stacks.len() } else { 1 };
        stacks.iter().take(count).find_map(|stack| failure(*at, stack))
    };
    let last = works.last().filter(|(at, _)| kill.since(*at) <= LAST_SECONDS_S)?;
    let begun = works.iter().rposition(|work| during(work).is_none()).map(|place| works[place].0);
    let private = process.private();
    let held = private.points().filter(|(at, _)| *at <= kill).map(|(_, bytes)| bytes).fold(0.0, f64::max);
    let before = begun.and_then(|at| private.at_or_before(at)).or(private.first())?.1;
    let failure = Failure { at: kill, ..during(last)? };
    (held - before >= MOST * held).then_some(KilledAtWork {
        failure,
        process,
        came: held - before,
        held,
        elsewhere: 0.0,
    })
}

/// Modules in which a thread stands that waits for another one, or for a file.
const WAITING: [&str; 5] =
    ["/threading.py:", "/queue.py:", "/selectors.py:", "/concurrent/futures/", "/connection.py:"];

/// `stack`: innermost last.
fn waits(stack: &[String]) -> bool {
    stack.last().is_some_and(|innermost| WAITING.iter().any(|module| innermost.contains(module)))
}

/// The innermost call in which most of what a killed process held came to it.
pub(crate) struct LastCall<'a> {
    /// `path:line function` of the call, and of where it was called from.
    pub(crate) frame: &'a str,
    pub(crate) from: &'a str,
    /// Bytes that came meanwhile, and that it held.
    pub(crate) came: f64,
    pub(crate) held: f64,
}

/// Of the main thread; none where it was in many, as one that leaks over many steps. What came before the first look that found it
/// in the call may be another's.
pub(crate) fn last_call(process: &ProcessHistory, kill: At) -> Option<LastCall<'_>> {
    let works: Vec<_> = process.works.iter().filter(|(at, _)| *at <= kill).collect();
    let (at, stacks) = works.last()?;
    let stack = stacks.first().filter(|stack| kill.since(*at) <= LAST_SECONDS_S && !waits(stack))?;
    let private = process.private();
    (1..stack.len()).rev().find_map(|depth| {
        let within =
            |stacks: &[Vec<String>]| stacks.first().is_some_and(|one| one.starts_with(&stack[..=depth]));
        let outside = works.iter().rposition(|(_, stacks)| !within(stacks)).map_or(0, |place| place + 1);
        let begun = works.get(outside)?.0;
        // Of a long run old readings are few.
        let (_, before) = private.at_or_before(begun).filter(|(at, _)| begun.since(*at) <= LAST_SECONDS_S)?;
        let (_, held) = private.peak_between(begun, kill)?;
        let came = held - before;
        // A comprehension is a call of its own, up to CPython 3.11.
        let from =
            stack[..depth].iter().rposition(|frame| frame.ends_with(" <module>") || !frame.ends_with('>'))?;
        (came >= MOST * held).then(|| LastCall { frame: &stack[depth], from: &stack[from], came, held })
    })
}
