//! Does a process grow to its end, so that it would have gone on?
//!
//! The surprise: where the first reading and the last ones fall on something that comes and goes is chance. So its lows and its
//! high-water mark are asked as well.

use super::growth_class::{is_start, loaded};
use super::run::Run;
use crate::history::{ProcessHistory, Series};
use crate::policy::growth::{
    GROWTH_WARN_BYTES, GROWTH_WARN_SHARE, RETAINED_LATE, RETAINED_STANDS, UNNAMED_END_INTERVALS,
    UNNAMED_GIVEN_BACK, UNNAMED_HALF, UNNAMED_INTERVALS, UNNAMED_LASTED, UNNAMED_LATE, UNNAMED_LATE_READINGS,
    UNNAMED_LATE_SHARE,
};
use crate::policy::trends::{GROWTH_LEAST_READINGS, GROWTH_LEAST_S};
use crate::trend::{flattens, Rise};
use ullage_model::At;

/// It is no start-up, no phase, and does not flatten.
pub(crate) fn goes_on(run: &Run, process: &ProcessHistory, rise: &Rise) -> bool {
    let private = process.private();
    let lasted = rise.until - rise.since;
    let lived = rise.until - loaded(process);
    let readings = private.points().filter(|(at, _)| at.seconds() >= rise.since).count();
    let held = private.peak().map_or(0.0, |(_, bytes)| bytes);
    let late = lasted >= UNNAMED_LATE * lived
        && readings >= UNNAMED_LATE_READINGS
        && rise.by >= UNNAMED_LATE_SHARE * held;
    let stood = process.worked_until.seconds() - rise.until;
    stood <= UNNAMED_END_INTERVALS * run.facts.interval_s.max(apart(&private))
        && lasted >= GROWTH_LEAST_S.max(UNNAMED_INTERVALS * run.facts.interval_s)
        && readings >= GROWTH_LEAST_READINGS
        && (lasted >= UNNAMED_LASTED * lived || late)
        && !settles(process, rise)
}

/// It is a start, or comes to rest, or is what comes and goes.
pub(crate) fn settles(process: &ProcessHistory, rise: &Rise) -> bool {
    // What it does so soon after it has loaded is its start, however steadily it rises.
    if is_start(process, rise.until) {
        return true;
    }
    let much = UNNAMED_HALF * much(process);
    let flat = |series: &Series| flattens(series, rise.since, rise.until, much);
    // What comes and goes blurs the readings, and not the most that was ever held, where that rose by enough late.
    let highest = highest(process);
    let then = |seconds: f64| highest.at_or_before(At::from_seconds(seconds)).map_or(0.0, |(_, most)| most);
    let rose_late = then(rise.until) - then((rise.since + rise.until) / 2.0) >= much;
    let comes_to_rest = flat(&process.private()) && (!rose_late || flat(&highest));
    comes_to_rest || comes_and_goes(process, rise)
}

/// What counts as much growth of a process.
fn much(process: &ProcessHistory) -> f64 {
    let held = process.private().peak().map_or(0.0, |(_, bytes)| bytes);
    (GROWTH_WARN_BYTES as f64).max(GROWTH_WARN_SHARE * held)
}

/// The most that was resident, but for mapped files.
fn highest(process: &ProcessHistory) -> Series {
    let files =
        |at: At| process.files.at_or_before(at).or(process.files.first()).map_or(0.0, |(_, bytes)| bytes);
    let mut highest = Series::default();
    process.high_water.points().for_each(|(at, bytes)| highest.push(at, bytes - files(at)));
    highest
}

/// It gave much back in between, and holds no more than it did before: its high-water mark stood still in the second half.
/// Readings may be further apart than its turns are long, and then show a rise that is none. A mark from before the rise says
/// nothing of it.
pub(crate) fn comes_and_goes(process: &ProcessHistory, rise: &Rise) -> bool {
    let private = process.private();
    let half = (rise.since + rise.until) / 2.0;
    let (mut highest, mut fell, mut early) = (0.0f64, 0.0f64, 0.0f64);
    for (at, bytes) in private.points().filter(|(at, _)| at.seconds() >= rise.since) {
        highest = highest.max(bytes);
        fell = fell.max(highest - bytes);
        if at.seconds() <= half {
            early = highest;
        }
    }
    let mark =
        |seconds: f64| process.high_water.at_or_before(At::from_seconds(seconds)).map(|(_, bytes)| bytes);
    let is_of_it = mark(rise.since).is_none_or(|before| before < highest);
    let came = match mark(half).zip(mark(rise.until)) {
        Some((before, after)) if is_of_it => Some(after - before),
        Some(_) => Some(highest - early),
        None => None,
    };
    fell >= UNNAMED_GIVEN_BACK * rise.by && came.is_some_and(|came| came < UNNAMED_GIVEN_BACK * rise.by)
}

/// Seconds between the last readings: more than the interval on a machine that is busy, or of a job that is large.
fn apart(private: &Series) -> f64 {
    let last: Vec<f64> = private.points().map(|(at, _)| at.seconds()).collect();
    let recent = &last[last.len().saturating_sub(GROWTH_LEAST_READINGS)..];
    match recent {
        [first, .., end] => (end - first) / (recent.len() - 1) as f64,
        _ => 0.0,
    }
}

/// A third of it was there all through its last third, where a straight line has two. Of what goes back to the kernel now and then,
/// the lows stay where they were.
pub(crate) fn stands(process: &ProcessHistory, rise: &Rise) -> bool {
    let private = process.private();
    let before = private.at_or_before(At::from_seconds(rise.since)).or(private.first());
    let late = rise.until - RETAINED_LATE * (rise.until - rise.since);
    let lowest = private
        .points()
        .filter(|(at, _)| (late..=rise.until).contains(&at.seconds()))
        .map(|(_, bytes)| bytes)
        .fold(f64::INFINITY, f64::min);
    lowest - before.map_or(0.0, |(_, bytes)| bytes) >= RETAINED_STANDS * rise.by
}
