//! Does a figure grow, how fast, for how long, and how high does it reach? Pure.
//!
//! Windows that all end at the last reading are tried, the longest first: everything, then four fifths of it, and so
//! on. Each is cut into eight equal times, and the growth of a window is the median of the slopes between the medians
//! of those (Theil-Sen). The first window that is *straight* is taken: none of the eight lies further from the line
//! than a tenth of what the line rises, beyond what the scatter of its readings explains. One test does for all
//! shapes. A warm-up before a leak bends the long windows, so that a shorter one is taken; a plateau bends every
//! window that still sees the rise; bursts and sawteeth are scatter within an eighth; stairs are straight once a
//! window holds enough of them.
//!
//! The surprise: a limit is met above the line. Bursts meet it first, but not the highest one first of all: each reading of
//! the last eighth, carried forward along the slope, is as likely as another to be what comes next. So the limit is told to
//! be met when it is as likely met as not, if one of them is drawn each tenth of a second.

use crate::history::Series;
use crate::policy::trends::{
    AS_LIKELY_AS_NOT, AT_REST_PART, DEVIATION_OF_MEDIAN, DRAW_S, EIGHTHS, ERROR_OF_MEDIAN,
    GROWTH_LEAST_READINGS, LINE_BEND, LINE_CERTAIN, LINE_GOES_ON, LINE_LEAST_PARTS, LINE_QUARTER,
    LINE_SHORTER,
};
use ullage_model::At;

/// What a figure does at its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trend {
    /// Too little was read to tell.
    Unknown,
    /// It does not grow.
    AtRest,
    /// It grew lately, in no straight line.
    Unsteady,
    /// It grows in a straight line.
    Growing(LineFit),
}

/// Growth in a straight line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineFit {
    /// Slope.
    pub(crate) per_second: f64,
    /// How long the line is, seconds.
    pub(crate) lasted_s: f64,
    /// The readings of the last eighth as they would be now, highest first.
    pub(crate) levels: Vec<f64>,
    /// The last eighth went beyond all that was read before.
    pub(crate) ongoing: bool,
}

impl LineFit {
    /// Seconds until a level is met.
    pub(crate) fn meets(&self, level: f64) -> f64 {
        let all = self.levels.len() as f64;
        let after = |reading: f64| ((level - reading) / self.per_second).max(0.0);
        let Some(lowest) = self.levels.last() else { return f64::INFINITY };
        let mut foreseen = 0.0;
        for (met, pair) in self.levels.windows(2).enumerate() {
            // From here on so many of them are beyond the level, until the next one is too.
            let (from, until) = (after(pair[0]), after(pair[1]));
            let a_second = -(1.0 - (met + 1) as f64 / all).ln() / DRAW_S;
            let wanted = (AS_LIKELY_AS_NOT - foreseen) / a_second;
            if wanted <= until - from {
                return from + wanted;
            }
            foreseen += a_second * (until - from);
        }
        after(*lowest)
    }
}

/// What the figure does at `now`, which is not before its last reading. `points` are in order of time.
pub(crate) fn trend(points: impl Iterator<Item = (At, f64)>, now: At) -> Trend {
    let points: Vec<(f64, f64)> = points.map(|(at, value)| (at.seconds(), value)).collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Trend::Unknown };
    let whole = last.0 - first.0;
    let late = since(&points, last.0 - whole / AT_REST_PART);
    // Most figures of a job stand still, and need no windows.
    if whole > 0.0 && late.len() >= GROWTH_LEAST_READINGS && late.iter().all(|point| point.1 == last.1) {
        return Trend::AtRest;
    }
    let mut span = whole;
    let mut window = points.as_slice();
    while window.len() >= GROWTH_LEAST_READINGS && span > 0.0 {
        if let Some(line) = Line::through(window).filter(Line::rises_straight) {
            let before = &points[..points.len() - window.len()];
            return match line.rises_before(before) {
                0 | 1 => Trend::Growing(line.growth(&points, window, now.seconds())),
                _ => Trend::Unsteady,
            };
        }
        span *= LINE_SHORTER;
        window = since(&points, last.0 - span);
    }
    match Line::through(late) {
        None => Trend::Unknown,
        Some(line) if line.rises() => Trend::Unsteady,
        Some(_) => Trend::AtRest,
    }
}

/// The same of a series.
pub(crate) fn trend_of(series: &Series, now: At) -> Trend {
    trend(series.points(), now)
}

fn since(points: &[(f64, f64)], start: f64) -> &[(f64, f64)] {
    &points[points.partition_point(|(t, _)| *t < start)..]
}

/// The line through a window, and how well it fits.
struct Line {
    slope: f64,
    span: f64,
    /// Its level at the window's first reading.
    start: f64,
    /// Standard error of a part's median, for an average part.
    error: f64,
    /// No part is further off than it may be.
    straight: bool,
}

impl Line {
    fn through(window: &[(f64, f64)]) -> Option<Line> {
        let (first, last) = (window.first()?, window.last()?);
        let span = last.0 - first.0;
        if span <= 0.0 {
            return None;
        }
        let parts = parts(window, span);
        if parts.len() < LINE_LEAST_PARTS {
            return None;
        }
        let level = |part: &[(f64, f64)]| median(part.iter().map(|p| p.1));
        if level(parts.first()?)? >= level(parts.last()?)? {
            return Some(Line { slope: 0.0, span, start: 0.0, error: 0.0, straight: false });
        }
        let medians: Vec<(f64, f64)> = parts
            .iter()
            .map(|part| Some((median(part.iter().map(|p| p.0))?, median(part.iter().map(|p| p.1))?)))
            .collect::<Option<_>>()?;
        let slope = median_slope(&medians)?;
        let above = |point: &(f64, f64)| point.1 - slope * (point.0 - first.0);
        let offsets: Vec<f64> =
            parts.iter().map(|part| median(part.iter().map(above))).collect::<Option<_>>()?;
        let middle = median(offsets.iter().copied())?;
        let scatter = median(
            parts.iter().zip(&offsets).flat_map(|(part, o)| part.iter().map(move |p| (above(p) - o).abs())),
        )?;
        let error = |readings: f64| ERROR_OF_MEDIAN * DEVIATION_OF_MEDIAN * scatter / readings.sqrt();
        let bend = LINE_BEND * slope * span;
        let straight = parts
            .iter()
            .zip(&offsets)
            .all(|(part, offset)| (offset - middle).abs() <= bend + 2.0 * error(part.len() as f64));
        Some(Line {
            slope,
            span,
            start: middle,
            error: error(window.len() as f64 / parts.len() as f64),
            straight,
        })
    }

    fn rises(&self) -> bool {
        let rise = self.slope * self.span;
        rise > 0.0 && rise >= LINE_CERTAIN * self.error
    }

    fn rises_straight(&self) -> bool {
        self.straight && self.rises()
    }

    /// How often it went through the middle half of this rise before: what comes and goes is no step to a limit.
    fn rises_before(&self, before: &[(f64, f64)]) -> usize {
        let quarter = LINE_QUARTER * self.slope * self.span;
        let (bottom, top) = (self.start + quarter, self.start + self.slope * self.span - quarter);
        passes(before, bottom, top)
    }

    fn growth(&self, points: &[(f64, f64)], window: &[(f64, f64)], now: f64) -> LineFit {
        let end = window.last().map_or(now, |last| last.0);
        let eighth = self.span / EIGHTHS as f64;
        let (before, late) = points.split_at(points.len() - since(points, end - eighth).len());
        let highest = |points: &[(f64, f64)]| points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
        let mut levels: Vec<f64> = late.iter().map(|(t, value)| value + self.slope * (now - t)).collect();
        levels.sort_unstable_by(|a, b| b.total_cmp(a));
        LineFit {
            per_second: self.slope,
            lasted_s: self.span,
            levels,
            ongoing: highest(late) >= highest(before) + LINE_GOES_ON * self.slope * eighth,
        }
    }
}

/// How often it went from one level or below it to another or above it.
pub(super) fn passes(points: &[(f64, f64)], bottom: f64, top: f64) -> usize {
    let sides = points.iter().filter_map(|(_, value)| match *value {
        value if value <= bottom => Some(false),
        value if value >= top => Some(true),
        _ => None,
    });
    let (mut low, mut passes) = (false, 0);
    for high in sides {
        passes += usize::from(low && high);
        low = !high;
    }
    passes
}

/// The readings of each eighth of the time; those without one are left out.
fn parts(window: &[(f64, f64)], span: f64) -> Vec<&[(f64, f64)]> {
    let start = window.first().map_or(0.0, |first| first.0);
    let part = |t: f64| (((t - start) / span * EIGHTHS as f64) as usize).min(EIGHTHS - 1);
    window.chunk_by(|a, b| part(a.0) == part(b.0)).collect()
}

/// The median of the slopes between all pairs.
fn median_slope(points: &[(f64, f64)]) -> Option<f64> {
    let pairs = points.iter().enumerate().flat_map(|(n, a)| points[n + 1..].iter().map(move |b| (a, b)));
    median(pairs.map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    let (half, even) = (values.len() / 2, values.len().is_multiple_of(2));
    if values.is_empty() {
        return None;
    }
    let (below, middle, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if even => Some((lower + *middle) / 2.0),
        _ => Some(*middle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading a second.
    fn of(seconds: usize, value: impl Fn(f64) -> f64) -> Trend {
        let points = (0..=seconds).map(|n| (At::from_seconds(n as f64), value(n as f64)));
        trend(points, At::from_seconds(seconds as f64))
    }

    fn growth(trend: Trend) -> LineFit {
        match trend {
            Trend::Growing(growth) => growth,
            other => panic!("{other:?}"),
        }
    }

    /// Between 0 and 1, the same for the same second.
    fn noise(t: f64) -> f64 {
        let mut bits = (t as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits ^= bits >> 29;
        bits = bits.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn a_straight_line_has_its_slope_its_length_and_its_end() {
        let line = growth(of(100, |t| 50.0 + 7.0 * t));
        assert_eq!((line.per_second, line.lasted_s, line.meets(785.0)), (7.0, 100.0, 5.0));
        assert!(line.ongoing);
    }

    #[test]
    fn scatter_and_single_outliers_do_not_bend_it() {
        let noisy = growth(of(100, |t| 7.0 * t + 60.0 * noise(t)));
        assert!((noisy.per_second - 7.0).abs() < 0.5, "{noisy:?}");
        let spiked = growth(of(100, |t| 7.0 * t + if t % 17.0 == 0.0 { 400.0 } else { 0.0 }));
        assert!((spiked.per_second - 7.0).abs() < 0.5, "{spiked:?}");
    }

    #[test]
    fn a_warm_up_in_front_is_left_out() {
        let line = growth(of(100, |t| if t < 20.0 { 50.0 * t } else { 1000.0 + 2.0 * (t - 20.0) }));
        assert!((line.per_second - 2.0).abs() < 0.2 && (60.0..=85.0).contains(&line.lasted_s), "{line:?}");
    }

    #[test]
    fn a_rest_in_front_is_left_out() {
        let line = growth(of(100, |t| 2.0 * (t - 60.0).max(0.0)));
        assert!((line.per_second - 2.0).abs() < 0.3 && line.lasted_s < 50.0, "{line:?}");
    }

    #[test]
    fn what_is_flat_falls_or_only_scatters_is_at_rest() {
        assert_eq!(of(100, |_| 5.0), Trend::AtRest);
        assert_eq!(of(100, |t| 500.0 - t), Trend::AtRest);
        assert_eq!(of(100, |t| 500.0 + 30.0 * noise(t)), Trend::AtRest);
        assert_eq!(of(100, |t| 500.0 + t % 9.0), Trend::AtRest, "a sawtooth");
        assert_eq!(of(100, |t| 12.0 + (t / 60.0).floor()), Trend::AtRest, "one step");
    }

    #[test]
    fn a_warm_up_that_has_come_to_rest_does_not_grow() {
        assert_eq!(of(60, |t| 40.0 * t.min(25.0)), Trend::AtRest);
        assert_eq!(of(600, |t| (1e6 * (1.0 - (-t / 30.0).exp())).floor()), Trend::AtRest);
    }

    #[test]
    fn stairs_and_sawteeth_that_climb_grow_and_reach_their_upper_edge() {
        let stairs = growth(of(600, |t| 100.0 * (t / 30.0).floor()));
        assert!((stairs.per_second - 100.0 / 30.0).abs() < 0.2, "{stairs:?}");
        assert!((stairs.meets(2100.0) - 30.0).abs() < 20.0, "{stairs:?}");
        let teeth = growth(of(600, |t| 3.0 * t + 20.0 * (t % 10.0)));
        assert!((teeth.per_second - 3.0).abs() < 0.1 && (teeth.meets(1980.0) - 3.0).abs() < 8.0, "{teeth:?}");
    }

    #[test]
    fn a_figure_that_is_read_seldom_is_carried_forward() {
        let points = [0.0, 2.0, 5.0, 11.0, 23.0, 44.0].map(|t| (At::from_seconds(t), 300.0 + 500.0 * t));
        let line = growth(trend(points.into_iter(), At::from_seconds(60.0)));
        assert_eq!((line.per_second, line.meets(30_300.0), line.meets(35_300.0)), (500.0, 0.0, 10.0));
    }

    #[test]
    fn what_comes_and_goes_is_no_growth_at_its_third_rise() {
        let teeth = |t: f64| 500.0 + 3.0 * (t % 100.0);
        assert!(matches!(of(90, teeth), Trend::Growing(_)), "nothing tells it from a leak");
        assert_eq!(of(290, teeth), Trend::Unsteady);
        let loaded_then_leaks = |t: f64| if t < 10.0 { 900.0 } else { 300.0 + 2.0 * t };
        assert!(matches!(of(200, loaded_then_leaks), Trend::Growing(_)));
    }

    #[test]
    fn bursts_meet_a_limit_before_the_line_and_not_all_at_once() {
        // The line meets 1000 after 30 s; bursts of up to 90, ten times a second, are 9 s of it.
        let tenths = |n: usize| n as f64 / 10.0;
        let burst = |n: usize| 90.0 * noise(n as f64);
        let points = (0..700).map(|n| (At::from_seconds(tenths(n)), 10.0 * tenths(n) + burst(n)));
        let left = growth(trend(points, At::from_seconds(69.9))).meets(1000.0);
        let met = (700..).find(|n| 10.0 * tenths(*n) + burst(*n) >= 1000.0).unwrap();
        assert!((left - (tenths(met) - 69.9)).abs() < 1.0 && (21.5..24.0).contains(&left), "{left} of {met}");
    }

    #[test]
    fn a_single_burst_is_waited_for_but_not_for_long() {
        let spiked = growth(of(400, |t| t + if t == 380.0 { 100.0 } else { 0.0 }));
        let left = spiked.meets(600.0);
        assert!(
            (100.0..110.0).contains(&left),
            "one reading of 51 is beyond after 100 s, the line after 200: {left}"
        );
        assert_eq!(growth(of(100, |t| 50.0 + 7.0 * t)).meets(700.0), 0.0, "beyond it already");
    }

    #[test]
    fn growth_that_stopped_does_not_go_on() {
        assert!(!growth(of(100, |t| 7.0 * t.min(88.0))).ongoing);
    }

    #[test]
    fn too_little_is_no_course() {
        assert_eq!(of(0, |t| t), Trend::Unknown);
        assert_eq!(of(3, |t| t), Trend::Unknown);
        assert_eq!(trend(std::iter::repeat_n((At(7), 1.0), 9), At(7)), Trend::Unknown, "all at one moment");
        assert_eq!(trend(std::iter::empty(), At(0)), Trend::Unknown);
    }

    #[test]
    fn a_median_of_an_even_number_lies_between() {
        assert_eq!(median([4.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 9.0].into_iter()), Some(3.0));
        assert_eq!(median(std::iter::empty()), None);
    }
}
