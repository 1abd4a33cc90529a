//! Did a figure meet its limit between its last reading and the end of its process? Pure.

use crate::history::Series;
use crate::policy::limits::{AT_LIMIT, LAST_SECONDS_S, PROJECTED_FROM, PROJECTED_RATE};
use ullage_model::At;

/// Whether a figure met its limit between its last reading and the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// The last reading stood at the limit.
    Met,
    /// At the rate of its last readings it met the limit before the end.
    Projected,
    /// Nothing could have grown fast enough to tell "no", nor did it grow so that "yes" can be said.
    Possible,
    /// It stayed away.
    Excluded,
}

/// The reading that tells most of a process's last seconds: the largest of them, else the last there is.
pub(crate) fn representative_reading(series: &Series, until: At) -> Option<(At, f64)> {
    series.peak_between(At::from_seconds(until.seconds() - LAST_SECONDS_S), until).or_else(|| series.last())
}

/// Judges a figure at the end of its process. `fastest` is the growth a second that no machine exceeds.
pub(crate) fn reach(series: &Series, limit: u64, until: At, fastest: f64) -> Reach {
    let limit = limit as f64;
    let Some((at, value)) = series.last() else { return Reach::Possible };
    let age = until.since(at).max(0.0);
    // What it held it may give back before it ends.
    if value >= AT_LIMIT * limit
        || representative_reading(series, until).is_some_and(|(_, peak)| peak >= AT_LIMIT * limit)
    {
        return Reach::Met;
    }
    let rate = series.rate_at_end().unwrap_or(0.0);
    if value >= PROJECTED_FROM * limit
        && rate > 0.0
        && value + rate * PROJECTED_RATE * age >= AT_LIMIT * limit
    {
        return Reach::Projected;
    }
    // Between any two looks of its last seconds it may have met the limit and given everything back: a failed start of a
    // worker closes its descriptors as it unwinds.
    let last_seconds: Vec<(At, f64)> = series
        .points()
        .filter(|(at, _)| until.since(*at) <= LAST_SECONDS_S)
        .chain([(until, value)])
        .collect();
    let between_readings = last_seconds
        .windows(2)
        .any(|pair| pair[0].1 + fastest * pair[1].0.since(pair[0].0).max(0.0) >= limit);
    if between_readings || value + fastest * age >= limit {
        Reach::Possible
    } else {
        Reach::Excluded
    }
}
