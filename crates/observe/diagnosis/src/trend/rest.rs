//! At which level did a figure rest before it rose to its end?

use crate::history::Series;
use crate::policy::growth::{REST_BEFORE, REST_FROM, REST_READINGS, REST_SWING, REST_UNTIL};
use ullage_model::At;

/// Until when, and its highest reading then: in the middle of its life it swung little beside what it has come to at its end. None
/// of what rose all the time, swung as far, went back, or was read too seldom for that.
pub(crate) fn rested_at(series: &Series, since: At, until: At) -> Option<(At, f64)> {
    let span = until.since(since);
    let part = |share: f64| At::from_seconds(since.seconds() + share * span);
    let (_, highest) = series.peak_between(part(REST_FROM), part(REST_UNTIL))?;
    let (_, top) = series.highest_before(until)?;
    let inside = |at: At| (part(REST_FROM)..=part(REST_UNTIL)).contains(&at);
    let readings: Vec<f64> = series.points().filter(|(at, _)| inside(*at)).map(|(_, value)| value).collect();
    let lowest = readings.iter().copied().fold(f64::INFINITY, f64::min);
    (readings.len() >= REST_READINGS && top > highest && highest - lowest <= REST_SWING * (top - highest))
        .then_some((part(REST_UNTIL), highest))
}

/// Its highest reading until `before`, where it had come so far by then, beside the `top` that it came to afterwards, for a good part
/// of the time from `since` to `until`: it stood still, or went up and down below that. None where what it went down to rose: it grew
/// below what it once had; nor where it was read too seldom.
pub(crate) fn stood_at(series: &Series, (since, until): (At, At), before: At, top: f64) -> Option<f64> {
    let (_, level) = series.peak_between(since, before)?;
    let swing = REST_SWING * (top - level).max(0.0);
    let (first, _) = series.points().find(|(at, value)| *at >= since && *value >= level - swing)?;
    let middle = At::from_seconds(f64::midpoint(first.seconds(), before.seconds()));
    let lowest = |from: At, to: At| {
        let inside = series.points().filter(|(at, _)| (from..=to).contains(at));
        inside.map(|(_, value)| value).fold(f64::INFINITY, f64::min)
    };
    let readings = series.points().filter(|(at, _)| (first..=before).contains(at)).count();
    let stood = before.since(first) >= REST_BEFORE * until.since(since);
    let rose = lowest(middle, before) > lowest(first, middle) + swing;
    (readings >= REST_READINGS && stood && !rose).then_some(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stood(readings: &[f64], before: usize) -> Option<f64> {
        let mut series = Series::default();
        readings
            .iter()
            .enumerate()
            .for_each(|(second, value)| series.push(At::from_seconds(second as f64), *value));
        let at = |second: usize| At::from_seconds(second as f64);
        let top = readings.last().copied().unwrap_or_default();
        stood_at(&series, (at(0), at(readings.len().saturating_sub(1))), at(before), top)
    }

    #[test]
    fn what_stands_still_before_a_rise_stood_at_its_highest_reading() {
        assert_eq!(stood(&[0.0, 500.0, 501.0, 500.0, 500.0, 520.0, 540.0, 560.0], 4), Some(501.0));
        assert_eq!(stood(&[0.0, 500.0, 500.0, 500.0, 520.0, 540.0, 560.0], 3), None, "read too seldom");
        assert_eq!(stood(&[0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0], 4), None, "it rose all the time");
        assert_eq!(stood(&[500.0, 500.0, 500.0, 500.0, 500.0, 400.0, 300.0], 4), Some(500.0), "nothing came");
        let mut long = vec![500.0; 5];
        long.extend((0..30).map(|second| 500.0 + f64::from(second)));
        assert_eq!(stood(&long, 4), None, "for a small part of its life");
        let steps = [0.0, 300.0, 500.0, 350.0, 490.0, 340.0, 500.0, 350.0, 600.0, 640.0, 700.0];
        assert_eq!(stood(&steps, 7), Some(500.0), "it goes up and down below that");
        let leak = [0.0, 300.0, 400.0, 350.0, 490.0, 400.0, 580.0, 500.0, 600.0, 640.0, 700.0];
        assert_eq!(stood(&leak, 7), None, "and here each time a little further");
        let spike = [0.0, 600.0, 200.0, 250.0, 300.0, 350.0, 400.0, 450.0, 500.0, 550.0, 600.0, 700.0];
        assert_eq!(stood(&spike, 10), None, "it grew below what it once had");
        assert_eq!(stood(&[], 0), None);
    }

    fn rested(readings: &[f64]) -> Option<f64> {
        let mut series = Series::default();
        readings
            .iter()
            .enumerate()
            .for_each(|(second, value)| series.push(At::from_seconds(second as f64), *value));
        rested_at(&series, At::from_seconds(0.0), At::from_seconds(readings.len().saturating_sub(1) as f64))
            .map(|rest| rest.1)
    }

    #[test]
    fn what_rests_and_then_rises_rested_at_its_highest_reading_until_then() {
        assert_eq!(rested(&[0.0, 40.0, 40.0, 41.0, 40.0, 40.0, 41.0, 40.0, 40.0, 60.0, 80.0]), Some(41.0));
        assert_eq!(rested(&[0.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 90.0]), Some(40.0));
    }

    #[test]
    fn what_rises_or_swings_all_the_time_or_is_not_known_did_not_rest() {
        assert_eq!(rested(&[0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0]), None);
        assert_eq!(rested(&[0.0, 40.0, 70.0, 40.0, 70.0, 40.0, 70.0, 40.0, 70.0, 40.0, 80.0]), None);
        assert_eq!(
            rested(&[0.0, 80.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0]),
            None,
            "nothing came"
        );
        assert_eq!(
            rested(&[
                0.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0, 90.0, 41.0, 40.0, 40.0, 40.0, 40.0, 40.0, 40.0
            ]),
            None,
            "went back"
        );
        assert_eq!(rested(&[0.0, 40.0, 40.0, 90.0]), None, "read too seldom");
        assert_eq!(rested(&[]), None);
    }
}
