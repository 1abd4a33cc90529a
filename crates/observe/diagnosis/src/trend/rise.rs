//! Did a figure rise during a run, from when to when, and did it still rise at the end? Pure.
//!
//! [`trend`] says whether it grows at its end in a straight line. A run that is over asks more: what grew and came to
//! rest, and what grows in steps. So the run is also cut into eight equal times: what rises in three of them or more,
//! and late, goes on.
//!
//! What comes and goes is none of both: its first reading and its last ones are as the run happens to cut it.
//!
//! The surprise: at its very end a process lets go of everything. Readings that fall there are left out.

use super::line_fit::{passes, trend, Trend};
use crate::history::Series;
use crate::policy::sizes::MOST;
use crate::policy::trends::{
    EIGHTHS, END_AT_ONCE_S, END_FALL, END_FALL_READINGS, END_FALL_S, FLATTENS, GOES_ON, LINE_QUARTER, RISEN,
    RISE_AT_REST, RISE_BEGUN, RISE_LEAST_READINGS, RISE_STEP, RISE_STEPS,
};
use ullage_model::At;

/// A rise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rise {
    /// When it began and when it had happened, seconds.
    pub(crate) since: f64,
    pub(crate) until: f64,
    /// By how much, and how fast.
    pub(crate) by: f64,
    pub(crate) per_second: f64,
    /// It goes on at the end of what was read.
    pub(crate) ongoing: bool,
}

impl Rise {
    /// From when to when it is at rest, seconds, up to an end; none where it goes on.
    pub(crate) fn rests(&self, end: At) -> Option<(f64, f64)> {
        (!self.ongoing).then_some((self.until, end.seconds()))
    }
}

/// The rise of a figure from `start` on; none where it does not, or too little was read. `least`: less is none.
pub(crate) fn rise(series: &Series, start: f64, least: f64) -> Option<Rise> {
    let all: Vec<(f64, f64)> = series.points().map(|(at, value)| (at.seconds(), value)).collect();
    let points = without_end(&all[all.partition_point(|(t, _)| *t < start)..]);
    let (first, last) = (points.first()?, points.last()?);
    let span = last.0 - first.0;
    if points.len() < RISE_LEAST_READINGS || span <= 0.0 {
        return None;
    }
    let levels = levels(points, span);
    let (base, top) = (first.1, levels[EIGHTHS - 1]);
    let mut by = top.max(last.1) - base;
    if top < base + RISEN * by {
        by = top - base; // the last reading is one of its peaks
    }
    if by < least {
        return None;
    }
    let at = |t: f64| At::from_seconds(t.max(0.0));
    if let Trend::Growing(line) = trend(points.iter().map(|(t, value)| (at(*t), *value)), at(last.0)) {
        let of_line = line.per_second * line.lasted_s;
        if line.ongoing && of_line >= least && (of_line >= MOST * by || line.lasted_s >= span / 2.0) {
            return Some(Rise {
                since: last.0 - line.lasted_s,
                until: last.0,
                by: of_line.min(by),
                per_second: line.per_second,
                ongoing: true,
            });
        }
    }
    let quarter = LINE_QUARTER * by;
    if passes(points, base + quarter, base + by - quarter) > 1 {
        return None;
    }
    let since =
        points.iter().rev().find(|(_, value)| *value <= base + RISE_BEGUN * by).map_or(first.0, |p| p.0);
    // What stands scatters about its level: risen is what a whole eighth has reached, and a step one above all before.
    let risen = base + RISEN * by;
    let reached = levels.iter().position(|level| *level >= risen).unwrap_or(EIGHTHS);
    let from = first.0 + reached.saturating_sub(1) as f64 * span / EIGHTHS as f64;
    let until = points.iter().find(|(t, value)| *t >= from && *value >= risen).map_or(last.0, |p| p.0);
    let (mut highest, mut steps) = (base, 0);
    for level in levels {
        steps += usize::from(level - highest >= RISE_STEP * by);
        highest = highest.max(level);
    }
    let rested = last.0 - until >= RISE_AT_REST * span && !last_quarter_rises(points, span, levels, by);
    let ongoing = !rested && steps >= RISE_STEPS;
    let until = if ongoing { last.0 } else { until };
    Some(Rise { since, until, by, per_second: by / (until - since).max(span / 100.0), ongoing })
}

/// Peaks above a level that rises are early where it comes late. It goes on where the last quarter brought half of what it brings
/// to a line, to the medians and to the lowest readings alike.
fn last_quarter_rises(points: &[(f64, f64)], span: f64, levels: [f64; EIGHTHS], by: f64) -> bool {
    let end = points[0].0 + span;
    let lowest = |from: f64, to: f64| {
        let there = points.iter().filter(|(t, _)| (from..=to).contains(t));
        there.map(|(_, value)| *value).fold(f64::INFINITY, f64::min)
    };
    let quarter = LINE_QUARTER * span;
    let least = MOST * LINE_QUARTER * by;
    levels[EIGHTHS - 1] - levels[EIGHTHS - 3] >= least
        && lowest(end - quarter, end) - lowest(end - quarter - quarter, end - quarter) >= least
}

/// Whether what rose between two times comes to rest: the second half of it brought little of what the first did. A warm-up before
/// a growth does the same to it, and not to the second half alone: where that goes on as it began, and brought `least` or
/// more, it does not flatten.
pub(crate) fn flattens(series: &Series, since: f64, until: f64, least: f64) -> bool {
    let lasted = until - since;
    let reading = |t: f64| series.at_or_before(At::from_seconds(t.max(0.0))).or(series.first());
    // The median of an eighth around a time; the first reading is one that rose by nothing yet.
    let level = |part: f64| {
        let (middle, around) = (since + part * lasted, lasted / EIGHTHS as f64 / 2.0);
        let here = since.max(middle - around)..=until.min(middle + around);
        let near = series.points().filter(|(at, _)| here.contains(&at.seconds()));
        let mut values: Vec<f64> = near.map(|(_, value)| value).collect();
        values.sort_unstable_by(f64::total_cmp);
        let before = reading(middle).map_or(0.0, |(_, value)| value);
        values.get(values.len() / 2).copied().unwrap_or(before)
    };
    let first = reading(since).map_or(0.0, |(_, value)| value);
    let [half, late, last] = [2u8, 3, 4].map(|quarters| level(LINE_QUARTER * f64::from(quarters)));
    let goes_on = last - half >= least && last - late >= GOES_ON * (late - half);
    last - half <= FLATTENS * (half - first) && !goes_on
}

fn without_end(points: &[(f64, f64)]) -> &[(f64, f64)] {
    let end = points.last().map_or(0.0, |last| last.0);
    let mut rest = points;
    while let Some((last, before)) = rest.split_last() {
        let since = end - last.0;
        let peak = before.iter().map(|p| p.1).fold(0.0, f64::max);
        if since > END_FALL_S || last.1 >= (1.0 - END_FALL) * peak {
            break;
        }
        // It falls for longer: that is no end.
        if points.len() - rest.len() >= END_FALL_READINGS && since > END_AT_ONCE_S {
            return points;
        }
        rest = before;
    }
    rest
}

/// The median of each eighth; one without a reading is as the last reading before it: what does not move is not kept.
fn levels(points: &[(f64, f64)], span: f64) -> [f64; EIGHTHS] {
    let (start, mut last) = points[0];
    let part = |t: f64| (((t - start) / span * EIGHTHS as f64) as usize).min(EIGHTHS - 1);
    std::array::from_fn(|number| {
        let mut here: Vec<f64> = points.iter().filter(|p| part(p.0) == number).map(|p| p.1).collect();
        let before = last;
        last = here.last().copied().unwrap_or(last);
        here.sort_unstable_by(f64::total_cmp);
        here.get(here.len() / 2).copied().unwrap_or(before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(seconds: usize, value: impl Fn(f64) -> f64) -> Option<Rise> {
        let mut series = Series::default();
        for n in 0..=seconds {
            series.push(At::from_seconds(n as f64), value(n as f64));
        }
        rise(&series, 0.0, 30.0)
    }

    #[test]
    fn a_straight_rise_goes_on_and_its_end_may_fall() {
        let rise = of(40, |t| 100.0 + 5.0 * t).unwrap();
        assert!(rise.ongoing && (rise.by - 200.0).abs() < 1.0 && (rise.per_second - 5.0).abs() < 0.1);
        let rise = of(40, |t| if t > 38.5 { 20.0 } else { 100.0 + 5.0 * t }).unwrap();
        assert!(rise.ongoing && rise.by > 180.0, "{rise:?}");
    }

    #[test]
    fn an_end_at_which_all_that_rose_goes_one_by_one_is_left_out_and_a_long_fall_is_not() {
        let with_end = |apart: f64| {
            let mut series = Series::default();
            (0..=40).for_each(|t| series.push(At::from_seconds(t as f64), 10.0 + t as f64));
            for gone in 1..=40 {
                series.push(At::from_seconds(40.0 + apart * gone as f64), 50.0 - gone as f64);
            }
            rise(&series, 0.0, 8.0)
        };
        assert!(with_end(0.005).is_some_and(|rise| rise.ongoing && rise.by > 35.0));
        assert!(with_end(0.05).is_none_or(|rise| !rise.ongoing), "a fall of two seconds");
    }

    #[test]
    fn what_came_to_rest_says_when() {
        let rise = of(60, |t| 100.0 + 20.0 * t.min(15.0)).unwrap();
        assert!(!rise.ongoing && (12.0..=15.0).contains(&rise.until) && rise.since < 2.0, "{rise:?}");
        let late = of(60, |t| 100.0 + 20.0 * (t - 20.0).clamp(0.0, 15.0)).unwrap();
        assert!(!late.ongoing && late.since >= 20.0 && late.until <= 35.0, "{late:?}");
        let curve = of(60, |t| 1000.0 * (1.0 - (-t / 6.0).exp())).unwrap();
        assert!(!curve.ongoing, "{curve:?}");
    }

    #[test]
    fn what_is_read_only_as_it_moves_rests_where_it_moved_last() {
        let mut series = Series::default();
        for (t, value) in [(1.0, 100.0), (2.0, 150.0), (3.0, 200.0), (4.0, 260.0), (60.0, 260.0)] {
            series.push(At::from_seconds(t), value);
        }
        let rise = rise(&series, 0.0, 30.0).unwrap();
        assert!(!rise.ongoing && rise.until == 4.0, "{rise:?}");
    }

    #[test]
    fn a_curve_flattens_and_a_growth_behind_a_warm_up_does_not() {
        let flat = |value: &dyn Fn(f64) -> f64| {
            let mut series = Series::default();
            (0..=60).for_each(|n| series.push(At::from_seconds(f64::from(n)), value(f64::from(n))));
            flattens(&series, 0.0, 60.0, 30.0)
        };
        for speed in [2.0, 3.0, 6.0] {
            assert!(flat(&|t| 800.0 * (1.0 - (-speed * t / 60.0).exp())), "{speed}");
        }
        assert!(!flat(&|t| 5.0 * t));
        assert!(!flat(&|t| 40.0 * t.min(12.0) + 3.0 * t), "a warm-up, then a line");
        assert!(
            !flat(&|t| 20.0 * t.min(20.0) + 40.0 * (t / 8.0).floor() + 9.0 * (t * 7.0 % 5.0)),
            "then stairs"
        );
        assert!(flat(&|t| 40.0 * t.min(12.0) + 0.4 * t), "what came late is less than counts");
    }

    #[test]
    fn one_step_is_no_growth_and_many_are() {
        assert!(!of(60, |t| if t < 50.0 { 100.0 } else { 400.0 }).unwrap().ongoing);
        assert!(of(60, |t| 100.0 * (t / 9.0).floor()).unwrap().ongoing);
    }

    #[test]
    fn what_came_to_rest_and_scatters_there_has_come_to_rest() {
        let step = |t: f64| if t < 9.0 { 460.0 } else { 720.0 + 37.0 * ((t * 7.0) % 5.0) };
        let rise = of(60, step).unwrap();
        assert!(!rise.ongoing && rise.until <= 12.0, "{rise:?}");
    }

    #[test]
    fn what_rises_below_peaks_goes_on() {
        // What is copied at each step: twice as large for a moment.
        let peaks = |t: f64| if (t as u32).is_multiple_of(3) { 150.0 } else { 30.0 * ((t * 7.0) % 4.0) };
        let copied = of(60, |t| 300.0 + 500.0 * (t / 60.0).sqrt() + peaks(t)).unwrap();
        assert!(copied.ongoing, "{copied:?}");
        // One that a job had: the reading of each second, MiB.
        let server = [
            311, 349, 386, 481, 479, 512, 519, 544, 555, 570, 587, 645, 615, 634, 692, 655, 733, 768, 717,
            780, 737, 793, 791, 768, 853, 884, 832,
        ];
        let server = of(26, |t| f64::from(server[t as usize])).unwrap();
        assert!(server.ongoing, "{server:?}");
        // The same peaks above what came to rest.
        let at_rest = of(60, |t| 300.0 + 500.0 * (t / 20.0).min(1.0) + peaks(t));
        assert!(at_rest.is_none_or(|rise| !rise.ongoing), "{at_rest:?}");
        let slower = of(60, |t| 300.0 + 500.0 * (1.0 - (-t / 8.0).exp()) + peaks(t));
        assert!(slower.is_none_or(|rise| !rise.ongoing), "{slower:?}");
    }

    #[test]
    fn what_stands_falls_or_comes_and_goes_does_not_rise() {
        assert_eq!(of(60, |_| 500.0), None);
        assert_eq!(of(60, |t| 500.0 - t), None);
        assert_eq!(of(60, |t| if (20.0..30.0).contains(&t) { 900.0 } else { 500.0 }), None);
        assert_eq!(of(2, |t| 100.0 * t), None, "too little");
        let wave =
            |periods: f64| move |t: f64| 500.0 - 100.0 * (t / 60.0 * periods * std::f64::consts::TAU).cos();
        for periods in [2.5, 3.5, 7.4] {
            assert_eq!(
                of(60, wave(periods)),
                None,
                "it begins at its lowest and ends at its highest: {periods}"
            );
        }
    }
}
