//! Does a figure grow, since when, how fast, and when is a limit met? Numbers only; of this crate it names `history`.

pub(crate) mod counter;
pub(crate) mod forecast;
mod line_fit;
mod reach;
mod rest;
mod rise;

pub(crate) use line_fit::{trend_of, LineFit, Trend};
pub(crate) use reach::{reach, representative_reading, Reach};
pub(crate) use rest::{rested_at, stood_at};
pub(crate) use rise::{flattens, rise, Rise};
