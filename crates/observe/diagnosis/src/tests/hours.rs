//! Simulated hours: which limits are warned of, and how well the time left is told? Five figures a job, each of its own
//! shape; the limits are asked for every thirty seconds. Counts are printed (`--nocapture`).

use super::build::*;
use crate::limits;
use crate::Timeline;
use ullage_model::{Bytes, LimitKind, LimitState, Measured};

const SEEDS: u64 = 200;
const HOUR: usize = 3600;
const FIGURES: usize = 5;

pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub(super) fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// As often between 1 and 10 as between 10 and 100.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn pick(&mut self, of: usize) -> usize {
        (self.unit() * of as f64) as usize
    }
}

/// Times of the readings: a second apart, up to a tenth more or less.
fn clock(random: &mut Random, seconds: usize) -> Vec<f64> {
    (0..seconds).map(|n| n as f64 + random.between(-0.1, 0.1)).map(|t| t.max(0.0)).collect()
}

/// Periods of what swings, seconds.
const FAST: (f64, f64) = (0.3, 60.0);
const SLOW: (f64, f64) = (60.0, 1800.0);

/// What swings about a level: between 0 and 1, at each time.
fn swing(random: &mut Random, times: &[f64], (least, most): (f64, f64)) -> Vec<f64> {
    let period = random.scale(least, most);
    let phase = random.between(0.0, period);
    // What is fast does not wander.
    let kind = random.pick(if most > 60.0 { 5 } else { 4 });
    let mut drift = 0.5;
    times
        .iter()
        .map(|t| {
            let part = ((t + phase) / period).fract();
            match kind {
                0 => part,
                1 => f64::from(part > 0.7),
                2 => 0.5 + 0.5 * (part * std::f64::consts::TAU).sin(),
                // It wanders, and is drawn back to the middle.
                4 => {
                    drift +=
                        (0.5 - drift) / period.max(2.0) + random.between(-0.5, 0.5) / period.sqrt().max(1.5);
                    drift = f64::clamp(drift, 0.0, 1.0);
                    drift
                }
                _ if random.unit() < 0.1 => 1.0,
                _ => random.between(0.0, 0.3),
            }
        })
        .collect()
}

/// A level with swings about it: fast ones of up to 30 % of the limit, slow ones of up to 10 %, never above 95 %.
fn steady(random: &mut Random, times: &[f64]) -> Vec<f64> {
    let (fast, slow) = (random.between(0.0, 0.3), random.between(0.0, 0.1));
    let level = random.between(0.03, 0.95 - fast - slow);
    let (a, b) = (swing(random, times, FAST), swing(random, times, SLOW));
    a.iter().zip(&b).map(|(a, b)| level + fast * a + slow * b).collect()
}

/// A warm-up that comes to rest, with small swings on it: a curve that flattens, at any pace, up to 93 % of the limit; a
/// straight rise up to 93 % within a minute, or up to 65 % within any time.
fn warm_up(random: &mut Random, times: &[f64]) -> Vec<f64> {
    let base = random.between(0.01, 0.2);
    let (kind, pace) = (random.pick(5), random.scale(2.0, 900.0));
    let swings = random.between(0.0, 0.02);
    let top = if kind == 3 { random.between(0.25, 0.65) } else { random.between(0.25, 0.93) } - swings;
    let swing = swing(random, times, FAST);
    let rise = |t: f64| match kind {
        0 => 1.0 - (-t / pace).exp(),
        1 => t / (t + pace),
        2 => (t / pace.min(58.0)).min(1.0),
        3 => (t / pace).min(1.0),
        // Workers that start one after the other, and fill their caches.
        _ => (0..4).map(|k| 1.0 - (-(t - k as f64 * 3.0).max(0.0) / pace).exp()).sum::<f64>() / 4.0,
    };
    times.iter().zip(&swing).map(|(t, s)| base + (top - base) * rise(*t) + swings * s).collect()
}

/// A warm-up, then a leak in a straight line that comes in batches, with swings on it. Also when it begins.
fn leak(random: &mut Random, times: &[f64]) -> (Vec<f64>, f64) {
    let base = random.between(0.02, 0.4);
    let (begins, lasts) = (random.between(0.0, 60.0), random.scale(60.0, 3000.0));
    let (swings, batch) = (random.between(0.0, 0.05), random.scale(0.1, lasts / 50.0));
    let rate = (1.0 - base) / lasts;
    let swing = swing(random, times, (0.3, lasts / 50.0));
    let value = |t: &f64, s: &f64| {
        let batches = ((t - begins).max(0.0) / batch).floor() * batch;
        base * (t / begins.max(1.0)).min(1.0) + rate * batches + swings * s
    };
    (times.iter().zip(&swing).map(|(t, s)| value(t, s)).collect(), begins)
}

/// A job of which five figures take these shares of their limits.
struct Job {
    run: Run,
    timeline: Timeline,
}

impl Job {
    fn new() -> Job {
        let run = Run::with_trainer();
        let mut timeline = Timeline::default();
        run.items.iter().cloned().for_each(|item| timeline.push(item));
        Job { run, timeline }
    }

    fn tick(&mut self, at: f64, shares: [f64; FIGURES]) {
        let of = |index: usize, limit: f64| (shares[index].clamp(0.0, 1.0) * limit) as u64;
        let mut trainer = with_fds(reading(TRAINER, MAIN, "python"), of(0, 1024.0), 0);
        trainer.mappings = Measured::Missing(ullage_model::Missing::NotAsked);
        // Counted seldom, as in a running job.
        if (at as u64).is_multiple_of(15) {
            trainer = with_maps(trainer, of(1, 65_530.0), 0);
        }
        self.run.items.clear();
        self.run.tick(at, vec![trainer], |sample| {
            sample.cgroups = vec![group("/job", of(2, GIB as f64), GIB, 0, 0)];
            sample.filesystems = vec![shm(of(3, GIB as f64), GIB, 20, 1 << 20)];
            sample.host.memory = Measured::Known(host(64 * GIB - of(4, 64.0 * GIB as f64), 8 * GIB));
        });
        for item in self.run.items.drain(..) {
            self.timeline.push(item);
        }
    }

    fn limits(&self) -> Vec<LimitState> {
        limits(&self.run.facts, &self.timeline)
    }
}

/// Jobs of which a limit was warned of, with what was said first.
fn warned(shape: fn(&mut Random, &[f64]) -> Vec<f64>) -> Vec<String> {
    (0..SEEDS)
        .filter_map(|seed| {
            let random = &mut Random::new(seed);
            let times = clock(random, HOUR);
            let shapes: Vec<Vec<f64>> = (0..FIGURES).map(|_| shape(random, &times)).collect();
            let mut job = Job::new();
            times.iter().enumerate().find_map(|(tick, at)| {
                job.tick(*at, std::array::from_fn(|figure| shapes[figure][tick]));
                let due = tick % 30 == 29;
                let warning = due.then(|| job.limits().into_iter().find(|state| state.warning))??;
                Some(format!("seed {seed} at {at:.0} s: {warning:?}"))
            })
        })
        .collect()
}

#[test]
fn steady_hours_are_not_warned_of() {
    let warned = warned(steady);
    println!("steady: {} of {SEEDS} jobs of an hour, {FIGURES} figures each, had a warning", warned.len());
    assert!(warned.is_empty(), "{warned:#?}");
}

#[test]
fn warm_ups_that_come_to_rest_are_not_warned_of() {
    let warned = warned(warm_up);
    println!("warm-up: {} of {SEEDS} jobs of an hour, {FIGURES} figures each, had a warning", warned.len());
    assert!(warned.is_empty(), "{warned:#?}");
}

#[test]
fn leaks_are_foretold_from_half_way_on_and_warned_of() {
    let (mut forecasts, mut right, mut worst, mut first, mut warned, mut jobs) = (0, 0, 0.0_f64, 0, 0, 0);
    for seed in 0..SEEDS {
        let random = &mut Random::new(seed);
        let times = clock(random, HOUR);
        let leaking = random.pick(FIGURES);
        let (shape, begins) = leak(random, &times);
        let Some(end) = times.iter().zip(&shape).find(|(_, value)| **value >= 1.0).map(|(at, _)| *at) else {
            continue;
        };
        let others: Vec<Vec<f64>> = (0..FIGURES).map(|_| steady(random, &times)).collect();
        let kind = [
            LimitKind::Descriptors,
            LimitKind::Mappings,
            LimitKind::CgroupMemory,
            LimitKind::ShmBytes,
            LimitKind::HostMemory,
        ][leaking];
        let mut job = Job::new();
        let mut was_warned = false;
        for (tick, at) in times.iter().enumerate().take_while(|(_, at)| **at < end) {
            let share =
                |figure: usize| if figure == leaking { shape[tick] } else { 0.7 * others[figure][tick] };
            job.tick(*at, std::array::from_fn(share));
            let left = end - at;
            // In the end the swings are more than a fifth of what is left.
            if *at < (begins + end) / 2.0 || left < f64::max(10.0, 0.03 * (end - begins)) || tick % 5 != 0 {
                continue;
            }
            let states = job.limits();
            let forecast_left = states.iter().find(|s| s.kind == kind).and_then(|s| s.time_left_s);
            let off = forecast_left.map_or(1.0, |forecast| (forecast - left).abs() / left);
            worst = worst.max(off);
            forecasts += 1;
            right += usize::from(off <= 0.2);
            first += usize::from(states[0].kind == kind);
            was_warned |= states.iter().any(|state| state.kind == kind && state.warning);
        }
        jobs += 1;
        warned += usize::from(was_warned || end - begins < 100.0);
    }
    println!(
        "leaks: of {forecasts} readings from half-way on {right} within 20 %, the worst {:.0} % off; the right limit first in \
         {first}; {warned} of {jobs} jobs warned of, or over within 100 s",
        worst * 100.0
    );
    assert!(jobs > SEEDS as usize * 3 / 4, "{jobs} jobs");
    assert!(right * 100 >= forecasts * 97, "{right} of {forecasts}");
    assert!(first * 100 >= forecasts * 98, "{first} of {forecasts}");
    assert_eq!(warned, jobs);
}

#[test]
fn a_process_that_is_gone_is_not_warned_of() {
    let mut run = Run::with_trainer();
    for tick in 0..150 {
        let fds = with_fds(reading(TRAINER, MAIN, "python"), 6 * tick, 0);
        run.tick(tick as f64, vec![reading(MAIN, 1, "python"), fds], |_| {});
    }
    let leaks = |run: &Run| limits(&run.facts, &run.timeline()).iter().any(|state| state.warning);
    assert!(leaks(&run), "900 of 1024");
    run.ended(149.5, TRAINER, ullage_model::Ending::Exited(0));
    run.tick(150.0, vec![reading(MAIN, 1, "python")], |_| {});
    assert!(!leaks(&run));
}

#[test]
fn page_cache_is_no_step_to_a_limit() {
    for (page_cache, warned) in [(true, false), (false, true)] {
        let mut run = Run::with_trainer();
        for tick in 0..120u64 {
            run.tick(tick as f64, vec![reading(MAIN, 1, "python")], |sample| {
                let mut job = group("/job", tick * 8 * MIB, GIB, 0, 0);
                if let Measured::Known(memory) = &mut job.memory {
                    let file = Bytes(if page_cache { tick * 8 * MIB } else { 0 });
                    memory.parts = Measured::Known(ullage_model::cgroup::CgroupMemoryParts {
                        file,
                        ..Default::default()
                    });
                }
                sample.cgroups = vec![job];
            });
        }
        let states = limits(&run.facts, &run.timeline());
        assert_eq!(states.iter().any(|state| state.warning), warned, "{states:?}");
    }
}

#[test]
fn a_budget_is_a_limit() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let of = |run: &Run| {
        limits(&run.facts, &run.timeline()).into_iter().find(|state| state.kind == LimitKind::MemoryBudget)
    };
    assert_eq!(of(&run), None);
    run.facts.memory_max = Some(GIB);
    let budget = of(&run).expect("listed");
    assert_eq!(budget.limit, Measured::Known(ullage_model::Limit::At(GIB)));
    assert!(budget.used.known().is_some_and(|used| used > 200 * MIB), "{budget:?}");
}
