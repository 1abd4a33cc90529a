//! What was a process doing that the kernel killed for lack of memory? The agent says where the threads of a program are when
//! much memory has come; a kill leaves no traceback.
//!
//! The surprise: a program is always in the midst of something, and most of it is no reason. So a piece of work counts only
//! where it was under way at each of the last moments that were told, and most of what the process held came meanwhile; not
//! where a loader fetches a sample by it, which it does all the time; and in another thread than the main one only where that
//! one waits, since nobody knows otherwise which of the two the memory came to.
//!
//! Or where a process that had been steady, in the middle of its life or just before, was for the first time in a call in which most
//! of what came since came during the work, as in a function that copies all of its tensors and then writes them.

use super::failures::Failure;
use super::oom::Victim;
use crate::history::{function_of, ProcessHistory, Series, Timeline};
use crate::policy::limits::{KILL_SLACK_S, LAST_SECONDS_S};
use crate::policy::sizes::MOST;
use crate::trend::{rested_at, stood_at};
use std::borrow::Cow;
use ullage_model::{At, KernelOomKill};

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
        let mut at_it = all.filter_map(|process| {
            // One that was killed later is another kill's.
            let at_once = |other: &&Victim| other.at.since(victim.at) <= KILL_SLACK_S;
            let is_it = |other: &&Victim| other.process.is_some_and(|one| one.id == process.id);
            let line = victims.iter().filter(at_once).find(is_it);
            in_the_midst(process, victim.at, line.and_then(|victim| victim.line), &at_work)
        });
        let first = at_it.next()?;
        Some(KilledAtWork { elsewhere: at_it.map(|one| one.came).sum(), ..first })
    })
}

/// Its private memory until the kill, of which the kernel's line is the last reading: between two others much may come.
fn until_kill<'a>(process: &'a ProcessHistory, kill: At, line: Option<&KernelOomKill>) -> Cow<'a, Series> {
    let mut private = process.private();
    let last = process.anonymous.at_or_before(kill).zip(private.at_or_before(kill));
    if let Some((((_, anonymous), (at, bytes)), line)) = last.zip(line) {
        let more = line.anonymous as f64 - anonymous;
        if more > 0.0 && at < kill {
            private.to_mut().push(kill, bytes + more);
        }
    }
    private
}

fn in_the_midst<'a>(
    process: &'a ProcessHistory,
    kill: At,
    line: Option<&KernelOomKill>,
    at_work: &impl Fn(&Failure) -> bool,
) -> Option<KilledAtWork<'a>> {
    let works: Vec<_> = process.works.iter().filter(|(at, _)| *at <= kill).collect();
    let last = works.last().filter(|(at, _)| kill.since(*at) <= LAST_SECONDS_S)?;
    let private = until_kill(process, kill, line);
    let (_, held) = private.highest_before(kill)?;
    let at_each_of_the_last = || {
        let failure = during(process, last, at_work)?;
        let outside = works.iter().rposition(|work| during(process, work, at_work).is_none());
        let (_, before) = private.at_or_before(works[outside.unwrap_or(0)].0).or(private.first())?;
        let times = works.len() - outside.map_or(0, |outside| outside + 1);
        let came = held - before;
        (came >= MOST * held && certain(&failure, times, at_work)).then_some((failure, came, None))
    };
    let (failure, came, within) =
        at_each_of_the_last().or_else(|| within_a_call(process, &private, &works, kill, at_work))?;
    let failure = Failure { at: kill, ..failure };
    Some(KilledAtWork { failure, process, came, held, elsewhere: 0.0, within })
}

type Within<'a> = (Failure<'a>, f64, Option<LastCall<'a>>);

/// A process that had been steady was in one call, and most of what came there came in the midst of the work.
fn within_a_call<'a>(
    process: &'a ProcessHistory,
    private: &Series,
    works: &[&'a (At, Vec<Vec<String>>)],
    kill: At,
    at_work: &impl Fn(&Failure) -> bool,
) -> Option<Within<'a>> {
    let of = |before| innermost_call(process, private, kill, before);
    let call = of(Before::NewInProgram).or_else(|| of(Before::New))?;
    let (before, meanwhile) = works.split_at(works.iter().position(|(at, _)| *at >= call.begun)?);
    if before.iter().any(|work| during(process, work, at_work).is_some()) {
        return None; // it went well before
    }
    let level = |at: At| private.at_or_before(at).map_or(0.0, |(_, bytes)| bytes);
    let (mut came, mut times, mut first, mut since) = (0.0, 0, None, None);
    for work in meanwhile {
        match (during(process, work, at_work), since) {
            (Some(failure), begun) => {
                times += 1;
                first.get_or_insert(failure);
                since = begun.or(Some((work.0, level(work.0))));
            }
            // Of what is over only that counts which stayed.
            (None, Some((_, before))) => {
                came += (level(work.0) - before).max(0.0);
                since = None;
            }
            (None, None) => {}
        }
    }
    if let Some((begun, before)) = since {
        came += private.peak_between(begun, kill).map_or(0.0, |(_, most)| (most - before).max(0.0));
    }
    let failure = first?;
    // A loop over batches copies and lists what it keeps: what it is kept in is the reason.
    let batches =
        |stack: &Vec<String>| stack.iter().any(|frame| frame.contains("torch/nn/modules/module.py:"));
    let over_batches = || meanwhile.iter().any(|(_, stacks)| stacks.iter().any(batches));
    let counts = certain(&failure, times, at_work) && !(failure.is_native() && over_batches());
    (came >= MOST * call.came && counts).then_some((failure, came, Some(call)))
}

/// A function of C is named a little after it has returned as well: one look may have come too late.
fn certain(failure: &Failure, times: usize, at_work: &impl Fn(&Failure) -> bool) -> bool {
    times > 1 || !is_of_c(failure, at_work)
}

/// The work is what a function of C does, and not what the Python around it does.
fn is_of_c(failure: &Failure, at_work: &impl Fn(&Failure) -> bool) -> bool {
    let around = failure.stack.split_last().map_or(&[][..], |(_, around)| around);
    failure.is_native() && !at_work(&Failure { stack: around, ..*failure })
}

/// A thread of a process was at work then.
pub(crate) fn during<'a>(
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

/// Of the main thread: of one that leaks over many steps it is the function around them. What came before the first look that found
/// it in the call may be another's. None where that one waits: another thread's call is why.
pub(crate) fn last_call<'a>(
    process: &'a ProcessHistory,
    kill: At,
    line: Option<&KernelOomKill>,
) -> Option<LastCall<'a>> {
    let waited =
        process.works.iter().rfind(|(at, _)| *at <= kill)?.1.first().is_some_and(|stack| waits(stack));
    let private = until_kill(process, kill, line);
    let of = |before| innermost_call(process, &private, kill, before);
    of(Before::Any).or_else(|| of(Before::NewInProgram)).or_else(|| of(Before::Steady)).filter(|_| !waited)
}

/// What a process has to have been before the call in question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Anything: the call brought most of all that it held.
    Any,
    /// Steady: most of what came since.
    Steady,
    /// The same, and never seen in that function.
    New,
    /// And the function is the program's own: which of a library's it calls there says less.
    NewInProgram,
}

/// A comprehension is a call of its own, up to CPython 3.11.
fn is_nameless(frame: &str) -> bool {
    frame.ends_with('>') && !frame.ends_with(" <module>")
}

/// A function of a library that is installed, or of Python's own.
fn is_of_library(frame: &str) -> bool {
    ["/site-packages/", "/dist-packages/", "/lib/python"].iter().any(|part| frame.contains(part))
        || frame.starts_with('<')
}

/// Of the main thread's last look before the kill. None where that was long before it.
fn innermost_call<'a>(
    process: &'a ProcessHistory,
    private: &Series,
    kill: At,
    before: Before,
) -> Option<LastCall<'a>> {
    let steady = before != Before::Any;
    let works: Vec<_> = process.works.iter().filter(|(at, _)| *at <= kill).collect();
    let (at, stacks) = works.last()?;
    let stack = stacks.first().filter(|_| kill.since(*at) <= LAST_SECONDS_S)?;
    let rested = rested_at(private, process.first_seen, kill).filter(|_| steady);
    (1..stack.len()).rev().find_map(|depth| {
        let within = |stacks: &[Vec<String>]| {
            stacks.first().is_some_and(|one| {
                one.starts_with(&stack[..depth])
                    && one.get(depth).is_some_and(|frame| is_same_function(frame, &stack[depth]))
            })
        };
        let outside = works.iter().rposition(|(_, stacks)| !within(stacks)).map_or(0, |place| place + 1);
        let begun = works.get(outside)?.0;
        let called = |other: &Vec<String>| other.iter().any(|frame| is_same_function(frame, &stack[depth]));
        let mut earlier = works[..outside].iter().flat_map(|(_, stacks)| stacks);
        let forgotten =
            function_of(&stack[depth]).is_some_and(|function| process.been_in.contains(&function));
        let mut is_new = || !is_nameless(&stack[depth]) && !forgotten && !earlier.any(called); // or it went well before
        let counts = match before {
            Before::Any | Before::Steady => true,
            Before::New => is_new(),
            Before::NewInProgram => !is_of_library(&stack[depth]) && is_new(),
        };
        if !counts {
            return None;
        }
        // Of a long run old readings are few.
        let (_, level) = private.at_or_before(begun).filter(|(at, _)| begun.since(*at) <= LAST_SECONDS_S)?;
        let (_, held) = private.peak_between(begun, kill)?;
        let came = held - level;
        let rise = match rested.filter(|(until, _)| begun >= *until) {
            Some((_, level)) => held - level,
            None if steady => {
                let level = stood_at(private, (process.first_seen, kill), begun, held)?;
                // What it had had before as well is no part of what the call brought.
                Some(held - level).filter(|rise| *rise >= MOST * came)?
            }
            None => held,
        };
        let calls =
            |frame: &String| !is_nameless(frame) && (before != Before::NewInProgram || !is_of_library(frame));
        let from = stack[..depth].iter().rposition(calls)?;
        let (frame, from) = (&stack[depth], &stack[from]);
        (came > 0.0 && rise > 0.0 && came >= MOST * rise).then_some(LastCall {
            frame,
            from,
            begun,
            came,
            held,
        })
    })
}

/// Of the same file, at whatever line.
fn is_same_function(one: &str, other: &str) -> bool {
    one == other || function_of(one).is_some_and(|function| function_of(other) == Some(function))
}
