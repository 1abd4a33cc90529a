//! When does a figure grow, when has it come to rest, and how far ahead may a forecast look?

/// Equal times that a window or a run is cut into: enough for a median of slopes, few enough that each holds readings.
pub(crate) const EIGHTHS: usize = 8;
/// Seconds and readings below which nothing is called growth. In any run: two ticks, whatever comes after them.
pub(crate) const GROWTH_LEAST_S: f64 = 2.0;
pub(crate) const GROWTH_LEAST_READINGS: usize = 5;
/// Nothing is divided by less. In any run: a tenth of a tick.
pub(crate) const LEAST_SPAN_S: f64 = 0.1;

/// Line: eighths with a reading that it needs.
pub(crate) const LINE_LEAST_PARTS: usize = 4;
/// Each window is this much of the one before.
pub(crate) const LINE_SHORTER: f64 = 0.8;
/// How far an eighth may lie from the line, as a share of the rise.
pub(crate) const LINE_BEND: f64 = 0.1;
/// A rise is one from so many standard errors of an eighth on; tests/hours.rs counts what warnings come of it.
pub(crate) const LINE_CERTAIN: f64 = 6.0;
/// Makes a standard deviation of a median deviation, and the error of a median of that of a mean: of a normal distribution.
pub(crate) const DEVIATION_OF_MEDIAN: f64 = 1.48;
pub(crate) const ERROR_OF_MEDIAN: f64 = 1.25;
/// The middle half of a rise begins here; what went through it twice comes and goes.
pub(crate) const LINE_QUARTER: f64 = 0.25;
/// It goes on where the last eighth lies so much of its own rise above all before.
pub(crate) const LINE_GOES_ON: f64 = 0.3;
/// What the states at a few readings say of a time between them, less so many standard errors: what is sure of it.
pub(crate) const RUNNABLE_ERRORS: f64 = 2.0;
/// One n-th of all readings, the last: where they are all alike, nothing grows.
pub(crate) const AT_REST_PART: f64 = 3.0;
/// A limit is met when it is as likely met as not: at so many failures foreseen (the logarithm of 2).
pub(crate) const AS_LIKELY_AS_NOT: f64 = std::f64::consts::LN_2;
/// Time of a draw. In any run: as often as a figure is read where a limit is near.
pub(crate) const DRAW_S: f64 = 0.1;

/// Rise: readings that an answer needs.
pub(crate) const RISE_LEAST_READINGS: usize = 4;
/// A fall of this much, within so many seconds of the end and so many readings, is the end itself. In any run: a process
/// gives back what it holds within two ticks.
pub(crate) const END_FALL: f64 = 0.07;
pub(crate) const END_FALL_S: f64 = 2.5;
pub(crate) const END_FALL_READINGS: usize = 4;
/// Of any number of readings within this time. In any run: each process that ends is a reading, and many end at once.
pub(crate) const END_AT_ONCE_S: f64 = 0.5;
/// So much of the rise has happened: it has begun,
pub(crate) const RISE_BEGUN: f64 = 0.05;
/// and it has come to rest.
pub(crate) const RISEN: f64 = 0.9;
/// At rest for this share of the time, a rise is over.
pub(crate) const RISE_AT_REST: f64 = 0.25;
/// An eighth that brought this share of the rise was one in which it rose,
pub(crate) const RISE_STEP: f64 = 0.06;
/// and a rise in steps needs so many of them.
pub(crate) const RISE_STEPS: usize = 3;
/// Of the first half of a rise, what the second brings at least: less, and it flattens,
pub(crate) const FLATTENS: f64 = 0.5;
/// unless the last quarter brings so much of what the one before it brought. Of a curve that comes to rest and that FLATTENS does
/// not see, the last quarter brings 0.71 of it (the root of one half).
pub(crate) const GOES_ON: f64 = 0.75;

/// A forecast reaches this many times as far ahead as the growth has lasted: nothing in a line says when it ends.
pub(crate) const FORECAST_REACH: f64 = 4.0;
/// A warning needs growth for so long, in any run: beside it stands a multiple of what is left, which a short warm-up has not,
pub(crate) const WARN_AFTER_S: f64 = 60.0;
/// and this many times as long as what is left takes.
pub(crate) const WARN_AT: f64 = 4.0;

/// A count of the agent is watched for so long. In any run: after 5 s any change is sent (see trend/counter.rs).
pub(crate) const COUNTER_LASTED_S: f64 = 5.0;
/// A count is sent again once it is so much more, or has changed after so long, seconds (torch_counts.py).
pub(crate) const COUNTER_AGAIN_SHARE: f64 = 0.25;
pub(crate) const COUNTER_AGAIN_S: f64 = 5.0;
/// It was last sent within this share of the time before the end.
pub(crate) const COUNTER_LATE: f64 = 0.3;
/// Of its rise, each half of the time has this share.
pub(crate) const COUNTER_HALF: f64 = 0.2;

/// The rate at an end is that of so many readings, over so long. In any run: what it did just before the end.
pub(crate) const END_RATE_READINGS: usize = 5;
pub(crate) const END_RATE_S: f64 = 10.0;

/// Mappings: up to this size of a new one, address space says something about their number.
pub(crate) const MAPPING_BYTES: f64 = 262_144.0;
/// New ones between two counts that a rate needs.
pub(crate) const MAPPINGS_COUNTED: f64 = 16.0;
/// Mapped files that moved by less are not worth a reading.
pub(crate) const FILES_MOVED_BYTES: f64 = (1 << 20) as f64;
