//! What was a process doing that the kernel killed for lack of memory? The agent says where the threads of a program are when
//! much memory has come; a kill leaves no traceback.
//!
//! The surprise: a program is always in the midst of something, and most of it is no reason. So a piece of work counts only
//! where it was under way at each of the last moments that were told, and most of what the process held came meanwhile; not
//! where a loader fetches a sample by it, which it does all the time; and in another thread than the main one only where that
//! one waits, since nobody knows otherwise which of the two the memory came to. Or where one call was under way, begun late,
//! and within it most came during the work, as where a function copies all of its tensors, then writes them.
//!
//! What a process held is what came to it since it last was at rest.

use super::failures::Failure;
use super::oom::Victim;
use crate::history::{ProcessHistory, Series, Timeline};
use crate::policy::limits::LAST_SECONDS_S;
use crate::policy::sizes::MOST;
use crate::trend::rested_at;
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
    /// The call in which it did the work.
    pub(crate) within: Option<LastCall<'a>>,
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
    let last = works.last().filter(|(at, _)| kill.since(*at) <= LAST_SECONDS_S)?;
    let private = process.private();
    let held = private.points().filter(|(at, _)| *at <= kill).map(|(_, bytes)| bytes).fold(0.0, f64::max);
    let at_each_of_the_last = || {
        let failure = during(process, last, at_work)?;
        let begun = works.iter().rposition(|work| during(process, work, at_work).is_none());
        let begun = begun.map(|place| works[place].0);
        let before = begun.and_then(|at| private.at_or_before(at)).or(private.first())?.1;
        let came = held - before;
        let within = None;
        (came >= MOST * rise(process, &private, begun, kill, held)).then_some((failure, came, within))
    };
    let within_a_call = || {
        let call = innermost_call(process, kill)?;
        let late = kill.since(call.begun) <= call.begun.since(process.first_seen);
        let moments = works.iter().filter(|(at, _)| late && *at >= call.begun);
        let until = moments.clone().skip(1).map(|(at, _)| *at).chain([kill]);
        let parts = moments.zip(until).filter_map(|(work, until)| {
            let more = private.peak_between(work.0, until)?.1 - private.at_or_before(work.0)?.1;
            Some((during(process, work, at_work)?, more.max(0.0)))
        });
        let parts: Vec<_> = parts.collect();
        let came: f64 = parts.iter().map(|(_, more)| more).sum();
        let failure = parts.into_iter().next()?.0;
        (came >= MOST * call.came).then_some((failure, came, Some(call)))
    };
    let (failure, came, within) = at_each_of_the_last().or_else(within_a_call)?;
    Some(KilledAtWork {
        failure: Failure { at: kill, ..failure },
        process,
        came,
        held,
        elsewhere: 0.0,
        within,
    })
}

/// A thread of a process was at work then.
fn during<'a>(
    process: &'a ProcessHistory,
    (at, stacks): &'a (At, Vec<Vec<String>>),
    at_work: &impl Fn(&Failure) -> bool,
) -> Option<Failure<'a>> {
    let main_waits = stacks.first().is_some_and(|stack| waits(stack));
    let count = if main_waits { stacks.len() } else { 1 };
    stacks.iter().take(count).find_map(|stack| {
        let failure = Failure {
            at: *at,
            process: Some(process),
            exception: None,
            stack,
            ending: process.ended.map(|end| end.1),
            follows: false,
        };
        let fetches = failure.passes("torch/utils/data/_utils/fetch.py");
        (!fetches && at_work(&failure)).then_some(failure)
    })
}

/// Bytes that came to a process by its kill: what came since it was at rest, where what is asked about has begun since, else all
/// that it held.
fn rise(process: &ProcessHistory, private: &Series, begun: Option<At>, kill: At, held: f64) -> f64 {
    let rest = rested_at(private, process.first_seen, kill);
    held - rest.filter(|(until, _)| begun.is_some_and(|begun| begun >= *until)).map_or(0.0, |rest| rest.1)
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
    /// When it was first found in it.
    pub(crate) begun: At,
    /// Bytes that came meanwhile, and that it held.
    pub(crate) came: f64,
    pub(crate) held: f64,
}

/// Of the main thread; none where it was in many, as one that leaks over many steps. What came before the first look that found it
/// in the call may be another's.
/// None where that one waits: another thread's call is why.
pub(crate) fn last_call(process: &ProcessHistory, kill: At) -> Option<LastCall<'_>> {
    let waited =
        process.works.iter().rfind(|(at, _)| *at <= kill)?.1.first().is_some_and(|stack| waits(stack));
    innermost_call(process, kill).filter(|_| !waited)
}

fn innermost_call(process: &ProcessHistory, kill: At) -> Option<LastCall<'_>> {
    let works: Vec<_> = process.works.iter().filter(|(at, _)| *at <= kill).collect();
    let (at, stacks) = works.last()?;
    let stack = stacks.first().filter(|_| kill.since(*at) <= LAST_SECONDS_S)?;
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
        let (frame, from) = (&stack[depth], &stack[from]);
        (came >= MOST * rise(process, &private, Some(begun), kill, held)).then_some(LastCall {
            frame,
            from,
            begun,
            came,
            held,
        })
    })
}
