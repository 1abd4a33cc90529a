//! When is a limit met at the growth that was seen, and is that worth a warning? Pure.
//!
//! Nothing in a straight line says when it ends: a warm-up looks like a leak until it is over. So a forecast reaches
//! only four times as far ahead as the growth has lasted, and a warning needs more: growth for a minute, four fifths
//! of the way gone (what is left takes a quarter of the time that it has grown), and the newest readings beyond all
//! before. A curve that flattens never gets there, since what is left always takes it longer than what was.
//!
//! The surprise: `used` is the last reading, the time left is not counted from it. Mappings are counted seldom, and
//! bursts meet a limit before the line does: both are in [`LineFit::meets`]. And what is counted may reach its limit: the
//! next one is refused, which takes a whole step more where the steps are few.

use super::line_fit::{trend_of, LineFit, Trend};
use crate::history::Series;
use crate::policy::trends::{FORECAST_REACH, WARN_AFTER_S, WARN_AT};
use ullage_model::{At, Limit, LimitKind, LimitState, Measured, Scope};

/// One figure, its limit, and how it came to be.
pub(crate) struct Figure<'a> {
    pub(crate) kind: LimitKind,
    pub(crate) scope: Scope,
    pub(crate) used: Option<u64>,
    pub(crate) limit: Measured<Limit>,
    /// What was read, and until when it is known to have gone on; none of what is over.
    pub(crate) seen: Option<(&'a Series, At)>,
}

impl Figure<'_> {
    /// Share of the limit in use; -1 where there is none.
    pub(crate) fn share(&self) -> f64 {
        share(self.used, self.limit)
    }

    /// False where no time left can come of it, whatever it did: so much of the way has to be gone.
    pub(crate) fn may_be_near(&self) -> bool {
        self.share() >= 1.0 / (1.0 + FORECAST_REACH)
    }

    pub(crate) fn state(self) -> LimitState {
        let near = self.may_be_near();
        let trend = self.seen.map_or(Trend::Unknown, |(series, now)| trend_of(series, now));
        let growth = match &trend {
            Trend::Growing(growth) => Some(growth),
            _ => None,
        };
        let slope_per_s = match trend {
            Trend::AtRest => Some(0.0),
            _ => growth.map(|growth| growth.per_second),
        };
        let time_left_s = self.limit.known().and_then(Limit::at).zip(self.used).and_then(|(limit, used)| {
            match (used >= limit && limit > 0, growth) {
                (true, _) => Some(0.0),
                // What was given back since leads to no limit, however fast it had grown.
                (false, Some(growth)) if near => time_left(growth, used as f64, refused_at(limit, self.kind)),
                (false, _) => None,
            }
        });
        let warning = growth.zip(time_left_s).is_some_and(|(growth, left)| {
            growth.ongoing && growth.lasted_s >= WARN_AFTER_S && WARN_AT * left <= growth.lasted_s
        });
        LimitState {
            kind: self.kind,
            scope: self.scope,
            used: self.used.into(),
            limit: self.limit,
            slope_per_s,
            time_left_s,
            growing_for_s: growth.map(|growth| growth.lasted_s),
            warning,
        }
    }
}

/// The first amount that is refused: bytes fit up to the limit, and of what is counted the limit is allowed.
fn refused_at(limit: u64, kind: LimitKind) -> f64 {
    limit as f64 + if kind.unit() == "bytes" { 0.0 } else { 1.0 }
}

fn time_left(growth: &LineFit, used: f64, level: f64) -> Option<f64> {
    // A failing process may have counted in itself more than was ever read.
    let counted = if growth.levels.first().is_none_or(|highest| used > *highest) { used } else { 0.0 };
    let left = growth.meets(level).min((level - counted) / growth.per_second);
    (left <= FORECAST_REACH * growth.lasted_s).then_some(left)
}

/// Share of the limit in use; -1 where there is none.
pub(crate) fn share(used: Option<u64>, limit: Measured<Limit>) -> f64 {
    match (used, limit.known().and_then(Limit::at)) {
        (Some(used), Some(limit)) if limit > 0 => used as f64 / limit as f64,
        (Some(used), Some(_)) if used > 0 => 1.0,
        _ => -1.0,
    }
}
