//! What do the live view and `now.json` cost? Prints times over a recording, by default a simulated day of 64 processes.
//!
//! `cargo run --release -p ullage-cli --example view_costs -- RECORDING`; `make bench-view` makes the recording first, from a
//! fixed pseudo-random sequence.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::time::{Duration, Instant};
use ullage_diagnosis::Timeline;
use ullage_job_state::{now_json, Derivation, JobState};
use ullage_model::Item;
use ullage_recording::Follower;
use ullage_tui::{Heading, Key, Rect, View};

fn main() {
    let folder = std::env::args().nth(1).expect("the folder of a recording");
    let mut follower = Follower::open(&folder).unwrap();
    let run = follower.run.clone();
    let mut derivation = Derivation::new(&run);
    let mut timeline = Timeline::default();
    let mut view = View::new(Heading { command: run.command.clone(), place: Vec::new() }, true);
    let (mut deriving, mut samples, mut last) = (Duration::ZERO, 0_u32, None);
    let begun = Instant::now();
    follower
        .news(|item| {
            match item {
                Item::Event(event) => {
                    timeline.push_event(event.clone());
                    if let Some(happened) = derivation.event(&event, &timeline) {
                        view.happened(happened);
                    }
                }
                Item::Sample(sample) => {
                    timeline.push_sample(&sample);
                    let begun = Instant::now();
                    let state = Arc::new(derivation.sample(&sample, &timeline));
                    deriving += begun.elapsed();
                    samples += 1;
                    last = Some(Arc::clone(&state));
                    view.state(state);
                }
            }
            true
        })
        .unwrap();
    let reading = begun.elapsed();
    let state: Arc<JobState> = last.expect("a recording with samples");
    println!(
        "{samples} samples of {} processes read in {:.1} s; resident at most {} MB",
        state.running(),
        reading.as_secs_f64(),
        most_resident() / 1000
    );
    println!("a state: {:.3} ms", each(deriving, samples));

    let (mut writing, mut bytes) = (Duration::ZERO, 0);
    const TEXTS: u32 = 500;
    for _ in 0..TEXTS {
        let begun = Instant::now();
        bytes = now_json(&run, &state).len();
        writing += begun.elapsed();
    }
    let a_tick = each(deriving, samples) + each(writing, TEXTS);
    println!("now.json: {bytes} bytes, {a_tick:.3} ms a tick: {:.3} % of a core at 1 Hz", a_tick / 10.0);
    let limits = time(|| drop(ullage_diagnosis::limits(&run, &timeline)));
    println!(
        "judging limits: {limits:.2} ms; every rule: {:.1} ms",
        time(|| drop(ullage_diagnosis::diagnose(&run, &timeline)))
    );

    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        view.resized(width, height);
        let frame = time(|| drop(view.draw(Rect::new(0, 0, width, height))));
        println!("a frame of {width} × {height}: {frame:.2} ms");
    }
    let begun = Instant::now();
    follower.news(|_| true).unwrap();
    println!("asking for news where there is none: {:.2} ms", begun.elapsed().as_secs_f64() * 1000.0);

    let keys = [
        Key::Left,
        Key::FarLeft,
        Key::Right,
        Key::Char('g'),
        Key::FarRight,
        Key::Char('5'),
        Key::Char('1'),
        Key::Char('s'),
    ];
    let (mut longest, mut all) = (Duration::ZERO, Duration::ZERO);
    const KEYS: u32 = 2000;
    for n in 0..KEYS {
        let begun = Instant::now();
        view.key(keys[(n as usize * 7 + n as usize / 5) % keys.len()]);
        drop(view.draw(Rect::new(0, 0, 200, 60)));
        longest = longest.max(begun.elapsed());
        all += begun.elapsed();
    }
    println!(
        "a key and its frame: {:.2} ms, {:.2} ms at most",
        each(all, KEYS),
        longest.as_secs_f64() * 1000.0
    );
}

fn each(all: Duration, times: u32) -> f64 {
    all.as_secs_f64() * 1000.0 / f64::from(times.max(1))
}

/// The median of some runs, ms.
fn time(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..9)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[4]
}

/// VmHWM, kB.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
