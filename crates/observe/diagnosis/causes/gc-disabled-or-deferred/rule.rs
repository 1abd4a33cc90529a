//! Does a run show gc-disabled-or-deferred? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::goes_on::{comes_and_goes, settles};
use crate::analysis::growth_class::rising;
use crate::analysis::retainers::{are_much, explained_share, is_much, is_not_live};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::{EXPLAINS, EXPLAINS_MOST, GROWTH_BYTES};
use crate::policy::sizes::MOST;
use crate::rule::finding::of_process;
use crate::rule::retainers::{growth_sentence, unseen};
use crate::rule::{Judgement, Rule};
use crate::trend::Rise;
use ullage_model::{At, Census, Finding, Fix, ProcessId, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let rising = rising(analysis, GROWTH_BYTES as f64);
    let found: Vec<(&ProcessHistory, &Rise, Finding)> = rising
        .iter()
        .filter_map(|(process, rise)| Some((*process, rise, finding(analysis, process, *rise)?)))
        .collect();
    // Workers that do the same grow by little each.
    let going: Vec<(&ProcessHistory, &Rise)> = found
        .iter()
        .map(|(process, rise, _)| (*process, *rise))
        .filter(|(process, rise)| goes_on(process, rise))
        .collect();
    let much = are_much(analysis.timeline, &going);
    let of_all = |(process, _, finding): (&ProcessHistory, _, Finding)| {
        let is_going = going.iter().any(|(one, _)| one.id == process.id);
        let severity = if much && is_going { Severity::Warning } else { finding.severity };
        Finding { severity, ..finding }
    };
    let alike: Vec<ProcessId> = found.iter().map(|(process, ..)| process.id).collect();
    let is_found = |process: &ProcessHistory| alike.contains(&process.id);
    let frozen = rising.iter().filter(|(process, _)| !is_found(process));
    let frozen: Vec<Finding> =
        frozen.filter_map(|(process, rise)| frozen_again(analysis, process, *rise)).collect();
    let found: Vec<Finding> = found.into_iter().map(of_all).chain(frozen).collect();
    if found.is_empty() {
        return unseen(analysis).map_or(Judgement::Nothing, Judgement::undetermined);
    }
    Judgement::Found(found)
}

fn finding(analysis: &Analysis, process: &ProcessHistory, rise: Rise) -> Option<Finding> {
    let (at, census) = process.censuses.last().filter(|(at, _)| at.seconds() >= rise.since)?;
    let garbage = census.garbage.as_ref()?;
    let before = least_before(process, census).unwrap_or_default();
    let (bytes, grown) = (garbage.bytes - before.bytes, census.grown.saturating_sub(before.grown));
    let share = bytes.min(grown) as f64 / grown.max(1) as f64;
    // What is free now was collected after that census. A program that turned the collector off does that where it ends.
    let collected = census.collects && is_not_live(process, &rise);
    if share < EXPLAINS || bytes < GROWTH_BYTES / 2 || collected {
        return None;
    }
    // Garbage of the oldest generation may be older than the growth: one census alone does not show that it came.
    let came = !garbage.old || before.grown > 0 && !before.slid && !was_collected(process);
    let known = if share >= EXPLAINS_MOST && came { Proof::SeenInside } else { Proof::InPart };
    let severity =
        if goes_on(process, &rise) && is_much(process, &rise) { Severity::Warning } else { Severity::Note };
    let source = evidence::Source::Agent(process.id.pid);
    let waits = if !census.collects {
        "is off".into()
    } else if garbage.old {
        "goes through its oldest generation only once a quarter more objects have lived that long".into()
    } else {
        format!("waits for {} new objects", evidence::count(census.collects_after))
    };
    let came = if garbage.old { "were inspected" } else { "came since the last collection" };
    let state = format!(
        "The garbage collector of {} {waits}; {} objects {came}.",
        evidence::describe(process),
        evidence::count(garbage.objects)
    );
    let circles = format!(
        "Uncollected garbage retains {} of {} that came ({:.0} %): {} of {} inspected objects.",
        // Some of it was there before.
        evidence::bytes(bytes.min(grown)),
        evidence::bytes(grown),
        100.0 * share,
        evidence::count(garbage.garbage),
        evidence::count(garbage.inspected)
    );
    let retained = evidence::number("memory kept by garbage", bytes, "bytes", source.clone(), *at, circles);
    let name = if garbage.old { "objects inspected" } else { "objects since the last collection" };
    let waiting = evidence::number(name, garbage.objects, "objects", source, *at, state);
    let evidence = vec![evidence::with_limit(retained, grown), waiting, growth_sentence(process, &rise)];
    let mut finding = of_process(analysis, &RULE, severity, known, evidence, process);
    finding.at = Some(At::from_seconds(rise.since));
    Some(finding)
}

/// What a program collects itself now and then comes and goes. Where the collector is on, only so many objects wait for it: once so
/// many do, it comes to rest. Where it is off, a phase that makes less is no rest.
fn goes_on(process: &ProcessHistory, rise: &Rise) -> bool {
    let collects = process.censuses.last().is_some_and(|(_, census)| census.collects);
    let rests = if collects { settles(process, rise) } else { comes_and_goes(process, rise) };
    !rests
}

/// The oldest generation's garbage, in the order of the censuses that counted it: its bytes, and by how much the process had
/// grown.
fn old_garbage(process: &ProcessHistory) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
    process.censuses.iter().filter_map(|(_, census)| {
        let garbage = census.garbage.as_ref().filter(|garbage| garbage.old)?;
        Some((garbage.bytes, census.grown))
    })
}

/// What was garbage before.
#[derive(Default)]
struct Before {
    /// Bytes of what is among those that the last census counts.
    bytes: u64,
    /// By how much the process had grown.
    grown: u64,
    /// Some of what was counted then is out of sight by now.
    slid: bool,
}

/// Where it was least before the last census. Only those objects that came last are inspected: where garbage came, what was counted
/// before is no longer among them by as much. Of ever as much garbage, which comes and goes with each step, that is not so.
fn least_before(process: &ProcessHistory, last: &Census) -> Option<Before> {
    let garbage = last.garbage.as_ref().filter(|garbage| garbage.old)?;
    let all = process.censuses.iter().filter_map(|(_, census)| {
        let before = census.garbage.as_ref().filter(|before| before.old && before.bytes <= garbage.bytes)?;
        (census.grown < last.grown).then_some((before, census))
    });
    let (before, then) = all.min_by_key(|(before, census)| (before.bytes, census.grown))?;
    let whole = Before { bytes: before.bytes, grown: then.grown, slid: false };
    let Some((objects, now)) = then.objects.zip(last.objects) else { return Some(whole) };
    let came = now.saturating_sub(objects);
    let still = garbage.inspected.saturating_sub(came) as f64 / before.inspected.max(1) as f64;
    let new = garbage.garbage as f64 - still.min(1.0) * before.garbage as f64;
    if came == 0 || came > garbage.inspected || still >= 1.0 || new < MOST * came as f64 {
        return Some(whole);
    }
    Some(Before { bytes: (before.bytes as f64 * still) as u64, slid: true, ..whole })
}

/// Whether most of it went between two censuses: it comes and goes.
fn was_collected(process: &ProcessHistory) -> bool {
    let all = old_garbage(process);
    all.clone().zip(all.skip(1)).any(|((before, _), (after, _))| (after as f64) < MOST * before as f64)
}

/// `gc.freeze()` was called again and again while the process grew, and nothing that it can reach holds the growth: what was a
/// circle when it was frozen is never collected, and no census sees it.
fn frozen_again(analysis: &Analysis, process: &ProcessHistory, rise: Rise) -> Option<Finding> {
    let mut counted = process.censuses.iter().filter_map(|(at, census)| Some((at, census.frozen?)));
    let (_, first) = counted.clone().next()?;
    let (at, last) = counted.next_back().filter(|(at, _)| at.seconds() >= rise.since)?;
    if last <= first || explained_share(process, rise) >= EXPLAINS || !is_much(process, &rise) {
        return None;
    }
    let sentence = format!(
        "gc.freeze() was called while {} grew: {} objects are frozen, up from {}, and what is frozen is never collected.",
        evidence::describe(process),
        evidence::count(last),
        evidence::count(first)
    );
    let source = evidence::Source::Agent(process.id.pid);
    let frozen = evidence::number("frozen objects", last, "objects", source, *at, sentence);
    let evidence = vec![frozen, growth_sentence(process, &rise)];
    let mut finding = of_process(analysis, &RULE, Severity::Warning, Proof::InPart, evidence, process);
    finding.at = Some(At::from_seconds(rise.since));
    finding.fixes = vec![
        Fix::new("Thaw and collect before each freeze", "gc.unfreeze(); gc.collect(); gc.freeze()"),
        Fix::new("Or freeze once, before the first request", "gc.collect(); gc.freeze()  # once"),
    ];
    Some(finding)
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("Collect every 100 steps", "if step % 100 == 0: gc.collect()"),
        Fix::new(
            "Or leave the collector on, and freeze the objects that exist before training",
            "gc.collect(); gc.freeze(); gc.enable()",
        ),
    ]
}
