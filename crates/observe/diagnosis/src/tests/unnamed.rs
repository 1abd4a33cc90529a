//! Growth that nothing explains: when it is a warning, and all that looks like it and is none. Histories are drawn from a seed.

use super::build::*;
use ullage_model::{
    AgentMessage, At, Bytes, Census, ClockTicks, Ending, EventKind, Item, Limit, LoaderSettings, Measured,
    ProcessFacts, ProcessReading, ProcessState, Retainer, Role, Severity, Verdict,
};

const CAUSE: &str = "unnamed-growth";
const TRACKER: i32 = 101;
const HELPER: i32 = 300;

/// Between 0 and 1, the same for the same number.
fn noise(number: f64, seed: u64) -> f64 {
    let mut bits =
        (number.to_bits() ^ seed.wrapping_mul(0xD6E8_FEB8_6659_FD93)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits ^= bits >> 29;
    bits = bits.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Moments of ticks: every tenth of the first second, then as far apart as this.
fn ticks(seconds: f64, apart: f64) -> Vec<f64> {
    let first = (1..=10).map(|tenth| f64::from(tenth) / 10.0);
    let rest = (1..).map(|n| 1.0 + f64::from(n) * apart).take_while(|at| *at <= seconds);
    first.chain(rest).collect()
}

/// So many MiB: private, of mapped files, of address space.
fn sized(pid: i32, private: f64, files: f64, space: f64) -> ProcessReading {
    let mut process = reading(pid, 1, "python");
    if let Measured::Known(memory) = &mut process.memory {
        memory.anonymous = Bytes((private * MIB as f64) as u64);
        memory.file = Bytes((files * MIB as f64) as u64);
        memory.virtual_size = Bytes((space * MIB as f64) as u64);
    }
    process
}

/// A job of one process, in an orderly end.
fn job(seconds: f64, apart: f64, private: impl Fn(f64) -> f64) -> Verdict {
    with_files(seconds, apart, private, |_| 100.0)
}

fn with_files(seconds: f64, apart: f64, private: impl Fn(f64) -> f64, files: impl Fn(f64) -> f64) -> Verdict {
    let mut run = Run::new();
    run.facts.agent = false;
    for at in ticks(seconds, apart) {
        let private = private(at);
        run.tick(at, vec![sized(MAIN, private, files(at), 3000.0 + private)], |_| {});
    }
    run.finish(seconds + 0.2, Ending::Exited(0)).verdict()
}

/// 10 seconds, an hour, three days.
const LENGTHS: [(f64, f64); 3] = [(10.0, 1.0), (3600.0, 5.0), (3.0 * 86_400.0, 300.0)];

#[track_caller]
fn is_reported(verdict: &Verdict, what: &str) {
    assert_eq!(causes(verdict), [CAUSE], "{what}");
    assert!(!verdict.healthy, "{what}");
}

#[track_caller]
fn is_left_in_peace(verdict: &Verdict, what: &str) {
    assert_eq!(causes(verdict), Vec::<&str>::new(), "{what}: {:?}", verdict.findings);
    assert!(verdict.healthy, "{what}");
}

#[test]
fn what_rises_to_the_end_of_a_run_of_any_length_is_reported() {
    for (seconds, apart) in LENGTHS {
        for seed in 0..3 {
            let rate = (300.0 + 600.0 * noise(1.0, seed)) / seconds;
            let swings = 20.0 * noise(2.0, seed);
            let straight = |t: f64| 80.0 + rate * t + swings * noise(t, seed);
            is_reported(
                &job(seconds, apart, straight),
                &format!("a straight line, {seconds} s, seed {seed}"),
            );
            let stairs = |t: f64| 80.0 + 60.0 * (10.0 * t / seconds).floor();
            is_reported(&job(seconds, apart, stairs), &format!("stairs, {seconds} s, seed {seed}"));
            let after_warm_up = |t: f64| 80.0 + 300.0 * (t / seconds).min(0.15) + rate * t;
            is_reported(
                &job(seconds, apart, after_warm_up),
                &format!("a warm-up, then a line, {seconds} s, seed {seed}"),
            );
            let teeth = |t: f64| 80.0 + rate * t + 40.0 * (20.0 * t / seconds).fract();
            is_reported(
                &job(seconds, apart, teeth),
                &format!("a sawtooth that climbs, {seconds} s, seed {seed}"),
            );
        }
    }
}

/// A job of one process that comes and goes by so many MiB between readings, and has a high-water mark.
fn with_temporaries(seconds: f64, apart: f64, swings: f64, private: impl Fn(f64) -> f64) -> Verdict {
    let mut run = Run::new();
    run.facts.agent = false;
    let mut highest = 0.0f64;
    for at in ticks(seconds, apart) {
        let now = private(at) + swings * noise(at, 3);
        highest = highest.max(private(at) + swings);
        let mut process = sized(MAIN, now, 100.0, 3000.0 + now);
        if let Measured::Known(memory) = &mut process.memory {
            memory.peak_resident = Bytes(((100.0 + highest) * MIB as f64) as u64);
        }
        run.tick(at, vec![process], |_| {});
    }
    run.finish(seconds + 0.2, Ending::Exited(0)).verdict()
}

#[test]
fn a_growth_behind_a_warm_up_as_large_is_reported_also_between_temporaries() {
    for (seconds, apart) in LENGTHS {
        for swings in [0.0, 60.0] {
            let of =
                |shape: fn(f64) -> f64| with_temporaries(seconds, apart, swings, move |t| shape(t / seconds));
            let what = |shape: &str| format!("{shape}, {seconds} s, {swings} MiB of temporaries");
            let line = of(|x| 80.0 + 1500.0 * x.min(0.3) + 450.0 * x);
            is_reported(&line, &what("a line"));
            let stairs = of(|x| 80.0 + 1200.0 * x.min(0.3) + 60.0 * (9.0 * x).floor());
            is_reported(&stairs, &what("stairs"));
            is_left_in_peace(&of(|x| 100.0 + 800.0 * (1.0 - (-5.0 * x).exp())), &what("a curve"));
            is_left_in_peace(&of(|x| 100.0 + 2000.0 * x.min(0.4)), &what("a warm-up alone"));
        }
    }
}

#[test]
fn libraries_that_come_late_raise_the_high_water_mark_of_no_growth() {
    // As two ranks that load gloo for their first collective: 90 MiB at first, 40 behind them, and 30 of files.
    let late = |at: f64| if at > 5.0 { 1.0 } else { 0.0 };
    let mut run = Run::new();
    run.facts.agent = false;
    for at in ticks(7.0, 0.5) {
        let private = 194.0 + 30.0 * at.min(3.0) + 40.0 * late(at);
        let files = 200.0 + 29.0 * late(at);
        let mut process = sized(MAIN, private, files, 3000.0 + private);
        if let Measured::Known(memory) = &mut process.memory {
            memory.peak_resident = Bytes(((private + files) * MIB as f64) as u64);
        }
        run.tick(at, vec![process], |_| {});
    }
    is_left_in_peace(&run.finish(7.2, Ending::Exited(0)).verdict(), "a collective");
}

#[test]
fn what_came_before_it_was_watched_may_have_come_as_fast() {
    // Readings of 20 s, of a process that has lived for longer; `by` MiB come to 1000.
    let watched = |before: u64, by: f64| {
        let mut run = Run::new();
        run.facts.agent = false;
        run.facts.recorder =
            Some(ullage_model::ProcessId { pid: 7, start: ClockTicks(id(MAIN).start.0 + 100 * before) });
        for at in ticks(20.0, 1.0) {
            let private = 1000.0 + by * at / 20.0;
            run.tick(at, vec![sized(MAIN, private, 100.0, 3000.0 + private)], |_| {});
        }
        run.verdict()
    };
    assert_eq!(causes(&watched(20, 200.0)), [CAUSE], "half of its life");
    assert_eq!(causes(&watched(0, 200.0)), Vec::<&str>::new(), "from its start");
    assert_eq!(causes(&watched(86_400, 60.0)), Vec::<&str>::new(), "little, of a day");
}

#[test]
fn memory_that_is_locked_is_distinguished() {
    let locks = |share: f64| {
        let mut run = Run::new();
        run.facts.agent = false;
        for at in ticks(20.0, 1.0) {
            let mut process = sized(MAIN, 50.0 + 20.0 * at, 100.0, 3050.0 + 20.0 * at);
            if let Measured::Known(memory) = &mut process.memory {
                memory.locked = Bytes((share * 20.0 * at * MIB as f64) as u64);
            }
            run.tick(at, vec![process], |_| {});
        }
        run.finish(20.2, Ending::Exited(0)).verdict()
    };
    let said = |share: f64| {
        let finding = &locks(share).findings[0];
        (
            finding.title.contains("(locked memory)"),
            sentences(finding).contains("is locked in memory (mlock)"),
        )
    };
    assert_eq!((said(0.9), said(0.1)), ((true, true), (false, false)));
}

#[test]
fn a_growth_that_begins_late_in_a_long_run_is_reported_and_the_same_of_a_short_one_is_a_phase() {
    let late = |seconds: f64| move |t: f64| 200.0 + 3000.0 * (t / seconds - 0.65).max(0.0);
    is_reported(&job(3600.0, 5.0, late(3600.0)), "20 minutes of an hour");
    is_reported(&job(3.0 * 86_400.0, 300.0, late(3.0 * 86_400.0)), "a day of three");
    is_left_in_peace(&job(10.0, 1.0, late(10.0)), "3 of 10 seconds");
}

#[test]
fn what_comes_to_rest_flattens_or_comes_and_goes_is_left_in_peace() {
    for (seconds, apart) in LENGTHS {
        let of = |shape: fn(f64) -> f64| job(seconds, apart, move |t| shape(t / seconds));
        is_left_in_peace(&of(|_| 500.0), "flat");
        is_left_in_peace(&of(|x| 100.0 + 2000.0 * x.min(0.4)), "a warm-up");
        is_left_in_peace(&of(|x| 100.0 + 800.0 * (1.0 - (-6.0 * x).exp())), "a curve that flattens");
        is_left_in_peace(&of(|x| 100.0 + 800.0 * (1.0 - (-3.0 * x).exp())), "a slower one");
        is_left_in_peace(&of(|x| 100.0 + 600.0 * (4.0 * x).fract()), "a sawtooth");
        is_left_in_peace(&of(|x| if x < 0.9 { 100.0 } else { 900.0 }), "a checkpoint at the end");
        is_left_in_peace(&of(|x| 100.0 + 4000.0 * (x - 0.85).max(0.0)), "the end is a phase");
        is_left_in_peace(&of(|x| if (0.3..0.6).contains(&x) { 900.0 } else { 100.0 }), "a large temporary");
        is_left_in_peace(&of(|x| 1000.0 + 60.0 * x), "little");
        is_left_in_peace(&of(|x| 1000.0 + 200.0 * x), "little of what it holds");
    }
}

#[test]
fn a_start_up_that_loads_libraries_to_the_end_is_left_in_peace() {
    let files = |t: f64| 20.0 + 60.0 * t;
    is_left_in_peace(&with_files(4.0, 1.0, |t| 10.0 + 40.0 * t, files), "import torch, and out");
    // Pages of mapped data are no libraries.
    let mut run = Run::new();
    for at in ticks(20.0, 1.0) {
        let mut process = sized(MAIN, 50.0 + 20.0 * at, 20.0 + 40.0 * at, 9000.0 + 20.0 * at);
        if let Measured::Known(mappings) = &mut process.mappings {
            mappings.data_file_bytes = Bytes(4 * GIB);
        }
        run.tick(at, vec![process], |_| {});
    }
    is_reported(&run.finish(20.2, Ending::Exited(0)).verdict(), "a leak beside a mapped dataset");
}

#[test]
fn a_job_that_is_over_within_seconds_has_not_begun_to_grow() {
    is_left_in_peace(&job(1.0, 1.0, |t| 10.0 + 400.0 * t), "a second");
    is_left_in_peace(&job(3.0, 1.0, |t| if t < 1.0 { 50.0 } else { 400.0 }), "one batch");
    is_left_in_peace(&job(4.0, 0.2, |t| 50.0 + 40.0 * t), "a dataset that is built, slowly");
    is_reported(&job(8.0, 0.2, |t| 50.0 + 40.0 * t), "the same for longer");
}

#[test]
fn a_start_lasts_longer_where_it_waits_for_a_core_and_not_where_it_sleeps() {
    // Cores that it had, of those that it could have used.
    let run = |seconds: f64, cores: f64, state: ProcessState| {
        let mut run = Run::new();
        run.facts.agent = false;
        for at in ticks(seconds, 0.2) {
            let mut process = sized(MAIN, 50.0 + 40.0 * at, 100.0, 3050.0 + 40.0 * at);
            process.state = state;
            process.cpu = ClockTicks((1.0 + 100.0 * cores * at) as u64);
            run.tick(at, vec![process], |_| {});
        }
        run.finish(seconds + 0.2, Ending::Exited(0)).verdict()
    };
    is_left_in_peace(&run(8.0, 0.4, ProcessState::Running), "3 s of work on a busy machine");
    is_reported(&run(8.0, 1.0, ProcessState::Running), "8 s of work");
    is_reported(&run(8.0, 2.0, ProcessState::Running), "threads");
    is_reported(&run(8.0, 0.1, ProcessState::Sleeping), "a leak beside a wait");
    is_reported(&run(20.0, 0.4, ProcessState::Running), "8 s of work on a busy machine");
}

#[test]
fn a_start_is_as_long_as_the_kernel_counted_that_it_waited() {
    // Of each second it waited so much, and computed a tenth; each reading finds it asleep.
    let run = |seconds: f64, waited: Option<f64>| {
        let mut run = Run::new();
        run.facts.agent = false;
        for at in ticks(seconds, 0.2) {
            let mut process = sized(MAIN, 50.0 + 40.0 * at, 100.0, 3050.0 + 40.0 * at);
            process.state = ProcessState::Sleeping;
            process.cpu = ClockTicks((1.0 + 10.0 * at) as u64);
            let delay = waited.map(|waited| (waited * at * 1e9) as u64);
            process.run_delay_ns = delay.map_or_else(Measured::default, Measured::Known);
            run.tick(at, vec![process], |_| {});
        }
        run.finish(seconds + 0.2, Ending::Exited(0)).verdict()
    };
    is_left_in_peace(&run(10.0, Some(0.65)), "4 s of its own in 10 s");
    for (seconds, waited, what) in [
        (10.0, Some(0.3), "7 s of its own"),
        (20.0, Some(0.65), "7 s of its own in 20 s"),
        (10.0, None, "an older recording says nothing of it"),
    ] {
        assert_eq!(causes(&run(seconds, waited)), [CAUSE], "{what}");
    }
}

/// A trainer that imports what it needs, of so many MiB, until 6 s and begins then; what it makes after that takes 2 s and
/// 120 MiB, and it reads that for a second.
fn builds_what_it_reads(method: &str) -> Verdict {
    let mut run = Run::new();
    run.process(0.1, MAIN, 1, Role::Main, limits(), 1000);
    run.process(0.5, TRAINER, MAIN, Role::Trainer, limits(), 1000);
    if let (true, Some(Item::Event(event))) = (method != "spawn", run.items.last_mut()) {
        if let EventKind::ProcessSeen { facts } = &mut event.what {
            facts.forked_from = Some(id(MAIN));
        }
    }
    for at in ticks(9.0, 0.5) {
        if at == 6.0 {
            let message = AgentMessage::Process {
                name: "Process-1".into(),
                target: "__main__.train".into(),
                worker: None,
                start_method: Some(method.into()),
                anonymous: None,
                dataset: None,
                arguments: None,
            };
            run.event(at, EventKind::Agent { id: Some(id(TRAINER)), pid: TRAINER, message });
        }
        let private = 10.0 + 20.0 * at.min(6.0) + 60.0 * (at - 6.0).clamp(0.0, 3.0);
        run.tick(at, vec![sized(MAIN, 50.0, 100.0, 3000.0), sized(TRAINER, private, 100.0, 3000.0)], |_| {});
    }
    run.finish(9.2, Ending::Exited(0)).verdict()
}

#[test]
fn what_a_process_imports_before_its_target_runs_is_no_growth_of_the_target() {
    is_left_in_peace(&builds_what_it_reads("forkserver"), "by a fork server, which had nothing of the job's");
    is_left_in_peace(&builds_what_it_reads("spawn"), "by spawn");
    is_reported(&builds_what_it_reads("fork"), "a forked process begins with everything");
}

#[test]
fn what_the_kernel_counts_of_a_process_that_was_heard_first_began_at_nothing() {
    // Heard at 0.1 s, and read from 4 s on, by when it had waited for 3.5 s.
    let start = |heard: bool| {
        let mut run = Run::new();
        run.process(0.1, MAIN, 1, Role::Main, limits(), 1000);
        if heard {
            let hello = AgentMessage::Holds { globals: Vec::new() };
            run.items.clear();
            run.event(0.1, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message: hello });
            run.process(0.2, MAIN, 1, Role::Main, limits(), 1000);
        }
        for at in [4.0, 5.0, 6.0, 7.0] {
            let mut process = sized(MAIN, 100.0, 50.0, 3000.0);
            process.run_delay_ns = Measured::Known(3_500_000_000);
            run.tick(at, vec![process], |_| {});
        }
        let timeline = run.timeline();
        let main = timeline.processes().next().unwrap();
        main.unhindered(main.first_seen, At::from_seconds(7.0))
    };
    assert!((3.3..=3.5).contains(&start(true)), "{}", start(true));
    assert!(start(false) >= 6.8, "it may have waited before it was seen: {}", start(false));
}

#[test]
fn a_few_readings_that_find_it_runnable_do_not_make_the_machine_busy() {
    // A second between readings, of which one in three finds it runnable; it computes a tenth of the time.
    for runnable in [[1, 4], [2, 4], [3, 4]] {
        let mut run = Run::new();
        run.facts.agent = false;
        for at in 0..=5 {
            let mut process = sized(MAIN, 50.0 + 40.0 * at as f64, 100.0, 3050.0 + 40.0 * at as f64);
            process.state =
                if runnable.contains(&at) { ProcessState::Running } else { ProcessState::Sleeping };
            process.cpu = ClockTicks(1 + 10 * at);
            run.tick(at as f64, vec![process], |_| {});
        }
        let verdict = run.finish(5.2, Ending::Exited(0)).verdict();
        is_reported(&verdict, &format!("runnable at {runnable:?}"));
    }
}

#[test]
fn loading_takes_a_third_of_a_life_without_what_it_waited_for_a_core() {
    // Libraries load until 5.4 s, of a life of 9.
    let loaded = |waited: f64| {
        let mut run = Run::new();
        for at in ticks(9.0, 0.2) {
            let until = at.min(5.4);
            let mut process = sized(MAIN, 100.0, 50.0 * until, 3000.0);
            process.run_delay_ns = Measured::Known((waited * until * 1e9) as u64);
            run.tick(at, vec![process], |_| {});
        }
        let timeline = run.timeline();
        let main = timeline.processes().next().unwrap();
        crate::analysis::growth_class::loaded(main)
    };
    let (alone, beside_others) = (loaded(0.0), loaded(0.7));
    assert!((2.4..=3.1).contains(&alone), "of a third of 9 s: {alone}");
    assert!((4.6..=5.4).contains(&beside_others), "of all that it loads: {beside_others}");
}

#[test]
fn a_process_waits_for_a_core_as_often_after_it_was_last_asked() {
    // It is asked for 120 s, of a life of 150, and waits for nine tenths of it. Files come once more at 110 s.
    let mut run = Run::new();
    for at in ticks(150.0, 0.5) {
        let mut process = sized(MAIN, 100.0, if at < 110.0 { (20.0 * at).min(300.0) } else { 340.0 }, 3000.0);
        if at <= 120.0 {
            process.run_delay_ns = Measured::Known((0.9 * at * 1e9) as u64);
        }
        run.tick(at, vec![process], |_| {});
    }
    let timeline = run.timeline();
    let main = timeline.processes().next().unwrap();
    let loaded = crate::analysis::growth_class::loaded(main);
    assert!((10.0..=20.0).contains(&loaded), "a third of a life of 15 s of its own is 50 s: {loaded}");
}

#[test]
fn what_was_freed_before_the_end_was_freed_by_the_work() {
    let freed_before = |seconds: f64| move |t: f64| if t > 12.0 - seconds { 50.0 } else { 50.0 + 40.0 * t };
    is_left_in_peace(&job(12.0, 1.0, freed_before(2.5)), "a large temporary, then nothing for a while");
    is_reported(&job(12.0, 1.0, freed_before(0.9)), "the end of the process frees all");
}

#[test]
fn a_buffer_that_is_touched_bit_by_bit_is_the_note_that_says_so() {
    let mut run = Run::new();
    for at in ticks(60.0, 1.0) {
        run.tick(at, vec![sized(MAIN, 50.0 + 10.0 * at, 100.0, 3000.0)], |_| {});
    }
    let verdict = run.finish(60.2, Ending::Exited(0)).verdict();
    is_left_in_peace(&verdict, "address space stands still");
    assert_eq!(verdict.findings[0].cause, "large-preallocation-lazy-touch");
}

#[test]
fn a_buffer_last_touched_near_the_start_is_no_growth_either() {
    for seconds in [4.2, 4.8, 5.4, 6.0, 7.0] {
        let mut run = Run::new();
        for at in ticks(seconds, 0.2) {
            run.tick(at, vec![sized(MAIN, 50.0 + 160.0 * at, 100.0, 3000.0)], |_| {});
        }
        let verdict = run.finish(seconds + 0.2, Ending::Exited(0)).verdict();
        is_left_in_peace(&verdict, &format!("{seconds} s"));
    }
}

#[test]
fn mapped_files_do_not_count_and_shared_memory_does() {
    let shared = |mib: fn(f64) -> f64| {
        let mut run = Run::new();
        for at in ticks(60.0, 1.0) {
            let mut process = sized(MAIN, 50.0, 100.0, 3000.0);
            if let Measured::Known(memory) = &mut process.memory {
                memory.shared = Bytes(mib(at) as u64 * MIB);
            }
            run.tick(at, vec![process], |_| {});
        }
        run.finish(60.2, Ending::Exited(0)).verdict()
    };
    let grows = shared(|at| 20.0 * at);
    assert_eq!(causes(&grows), [CAUSE]);
    let title = "Shared memory grows to the end, by 20 MiB a second; cause not found";
    assert_eq!(grows.findings[0].title, title);
    for (mib, what) in [
        (|at: f64| at, "little"),
        (|at: f64| 20.0 * at.min(30.0), "it came to rest"),
        (|at: f64| 40.0 * (at - 50.0).max(0.0), "it began a moment ago"),
    ] as [(fn(f64) -> f64, &str); 3]
    {
        assert!(!causes(&shared(mib)).contains(&CAUSE), "{what}");
    }
    is_left_in_peace(&with_files(60.0, 1.0, |_| 50.0, |t| 50.0 + 20.0 * t), "mapped files");
}

#[test]
fn a_segment_that_was_filled_is_at_rest_also_where_its_owner_ended_first() {
    let filled = |levels: [u64; 5]| {
        let mut run = Run::new();
        for (at, shared) in [0.15, 1.1, 2.14, 3.26, 4.2].into_iter().zip(levels) {
            let mut owner = sized(MAIN, 12.0, 20.0, 300.0);
            if let Measured::Known(memory) = &mut owner.memory {
                memory.shared = Bytes(shared * MIB);
            }
            run.tick(at, vec![owner, sized(TRACKER, 8.0, 20.0, 300.0)], |_| {});
        }
        run.tick(5.1, vec![sized(TRACKER, 8.0, 20.0, 300.0)], |_| {});
        run.finish(5.12, Ending::Exited(0)).verdict()
    };
    is_left_in_peace(&filled([4, 46, 88, 120, 120]), "filled in 3 s of 4");
    assert_eq!(causes(&filled([4, 46, 88, 136, 178])), [CAUSE]);
}

#[test]
fn what_is_free_inside_an_allocator_of_which_no_more_is_known_is_said_to_be_freed() {
    let mut run = Run::new();
    for at in ticks(60.0, 1.0) {
        run.tick(at, vec![sized(MAIN, 100.0 + 5.0 * at, 50.0, 3000.0 + 5.0 * at)], |_| {});
    }
    for (at, used, free) in [(1.2, 40.0, 2.0), (59.0, 60.0, 280.0)] {
        let figures = [("anonymous", 100.0 + 5.0 * at), ("malloc_used", used), ("malloc_free", free)]
            .map(|(name, mib)| (name.to_owned(), mib * MIB as f64));
        let message = AgentMessage::Memory { figures: figures.into() };
        run.event(at, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message });
    }
    let verdict = run.finish(60.2, Ending::Exited(0)).verdict();
    assert_eq!(causes(&verdict), [CAUSE]);
    assert!(verdict.findings[0].title.contains("(freed but held)"), "{}", verdict.findings[0].title);
    assert!(sentences(&verdict.findings[0]).contains("The program freed most of it."));
    assert!(verdict.findings[0].fixes[0].command.contains("malloc_trim"));
}

#[test]
fn processes_that_grow_together_are_one_finding() {
    let mut run = Run::new();
    for worker in 0..8 {
        run.process(0.1, 200 + worker, MAIN, Role::PoolWorker, limits(), 1000);
    }
    for at in ticks(60.0, 1.0) {
        let workers = (0..8).map(|worker| sized(200 + worker, 40.0 + 0.5 * at, 50.0, 3000.0 + 0.5 * at));
        let all = std::iter::once(sized(MAIN, 100.0, 50.0, 3000.0)).chain(workers).collect();
        run.tick(at, all, |_| {});
    }
    let verdict = run.finish(60.2, Ending::Exited(0)).verdict();
    is_reported(&verdict, "30 MiB each, 240 together");
    assert!(
        sentences(&verdict.findings[0]).contains("7 other processes grew the same way"),
        "{:?}",
        verdict.findings
    );
}

#[test]
fn growth_that_meets_a_limit_soon_is_reported_though_it_is_not_much() {
    let in_group = |limit: u64| {
        let mut run = Run::new();
        for at in ticks(60.0, 1.0) {
            run.tick(at, vec![sized(MAIN, 100.0 + at, 100.0, 3000.0 + at)], |sample| {
                sample.cgroups = vec![group("/job", (200 + at as u64) * MIB, limit * MIB, 0, 0)];
            });
        }
        run.finish(60.2, Ending::Exited(0)).verdict()
    };
    let near = in_group(400);
    is_reported(&near, "140 MiB left, 60 came in a minute");
    let said = sentences(&near.findings[0]);
    assert!(said.contains("it reaches the cgroup memory of cgroup /job in 2 min 20 s"), "{said}");
    is_left_in_peace(&in_group(4000), "hours away");
}

/// Main grows by 10 MiB a second, and these censuses come.
fn counted(retainer: Option<Retainer>) -> Verdict {
    let mut run = Run::new();
    for at in ticks(40.0, 1.0) {
        run.tick(at, vec![sized(MAIN, 50.0 + 10.0 * at, 100.0, 3000.0 + 10.0 * at)], |_| {});
        if at == 10.0 || at == 30.0 {
            let census = Census {
                number: if at == 10.0 { 1 } else { 2 },
                grown: 300 * MIB,
                retainers: retainer.clone().into_iter().filter(|_| at == 30.0).collect(),
                ..Census::default()
            };
            let message = AgentMessage::Census(Box::new(census));
            run.event(at, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message });
        }
    }
    run.finish(40.2, Ending::Exited(0)).verdict()
}

/// Two processes that multiprocessing started; the first one's growth has a name, and the second grows by so many MiB a second.
fn of_siblings(second: f64) -> Verdict {
    let mut run = Run::new();
    for pid in [200, 201] {
        run.process(0.1, pid, MAIN, Role::Other, limits(), 1000);
        let began = AgentMessage::Process {
            name: "Process-1".into(),
            target: "__main__.parse".into(),
            worker: None,
            start_method: Some("fork".into()),
            anonymous: None,
            dataset: None,
            arguments: None,
        };
        run.event(0.2, EventKind::Agent { id: Some(id(pid)), pid, message: began });
    }
    for at in ticks(40.0, 1.0) {
        let parsers = [(200, 10.0), (201, second)];
        let parsers = parsers.map(|(pid, rate)| sized(pid, 50.0 + rate * at, 50.0, 3000.0 + rate * at));
        run.tick(at, std::iter::once(sized(MAIN, 100.0, 50.0, 3000.0)).chain(parsers).collect(), |_| {});
        if at == 10.0 || at == 30.0 {
            let retainers = Some(retainer(180, false)).into_iter().filter(|_| at == 30.0).collect();
            let number = if at == 10.0 { 1 } else { 2 };
            let census = Census { number, grown: 300 * MIB, retainers, ..Census::default() };
            let message = AgentMessage::Census(Box::new(census));
            run.event(at, EventKind::Agent { id: Some(id(200)), pid: 200, message });
        }
    }
    run.finish(40.2, Ending::Exited(0)).verdict()
}

#[test]
fn a_name_in_one_process_stands_for_its_sibling_that_grows_as_much_and_not_for_more() {
    assert_eq!(causes(&of_siblings(9.0)), ["accumulate-metrics-outputs"]);
    assert_eq!(causes(&of_siblings(40.0)), ["accumulate-metrics-outputs", "unnamed-growth"]);
}

fn retainer(explains: u64, bounded: bool) -> Retainer {
    Retainer {
        name: "outputs".into(),
        place: "train(), train.py:31".into(),
        type_name: "collections.deque".into(),
        element: "Tensor [128, 1000] float32".into(),
        length: 400,
        before: Some(100),
        bytes: explains * MIB,
        own_bytes: explains * MIB,
        more_bytes: explains * MIB,
        of_bytes: 200 * MIB,
        bounded,
        ..Retainer::default()
    }
}

#[test]
fn it_yields_to_a_cause_that_explains_the_growth_and_to_no_other() {
    assert_eq!(causes(&counted(Some(retainer(180, false)))), ["accumulate-metrics-outputs"]);
    let bounded = counted(Some(retainer(180, true)));
    is_left_in_peace(&bounded, "a bounded deque explains it");
    assert_eq!(bounded.findings[0].severity, Severity::Note);
    let part = counted(Some(retainer(80, false)));
    is_reported(&part, "a third is explained by a note");
    assert_eq!(part.findings.len(), 2);
}

#[test]
fn a_failure_that_ended_the_run_is_the_story() {
    let mut run = Run::new();
    for at in ticks(40.0, 1.0) {
        run.tick(at, vec![sized(MAIN, 50.0 + 10.0 * at, 100.0, 3000.0 + 10.0 * at)], |_| {});
    }
    let mut report = raised("OSError", "[Errno 24] Too many open files");
    (report.counts.fds, report.counts.fds_torch, report.counts.nofile) = (Some(1023), Some(1000), Some(1024));
    let verdict = run.exception(40.1, MAIN, report).finish(40.2, Ending::Exited(1)).verdict();
    assert!(!causes(&verdict).is_empty() && !causes(&verdict).contains(&CAUSE), "{:?}", causes(&verdict));
}

#[test]
fn it_says_why_the_cause_was_not_found_and_what_settles_it() {
    let no_agent = job(60.0, 1.0, |t| 50.0 + 10.0 * t);
    let finding = &no_agent.findings[0];
    assert_eq!(finding.title, "Memory grows to the end, by 10 MiB a second; cause not found");
    assert!(sentences(finding).contains("and this job had none"), "{}", sentences(finding));
    assert_eq!(finding.fixes[0].command, "ullage run -- python train.py");
    let inspected = counted(None);
    assert!(
        sentences(&inspected.findings[0]).contains("The agent inspected it once"),
        "{}",
        sentences(&inspected.findings[0])
    );

    let mut attached = Run::new();
    attached.facts.agent = false;
    attached.facts.recorder = Some(id(7));
    for at in ticks(60.0, 1.0) {
        attached.tick(at, vec![sized(MAIN, 50.0 + 10.0 * at, 100.0, 3000.0 + 10.0 * at)], |_| {});
    }
    let verdict = attached.verdict();
    assert_eq!(verdict.findings[0].title, "Memory is growing, by 10 MiB a second; cause not found");
    assert!(
        sentences(&verdict.findings[0]).contains("was watched from outside"),
        "{:?}",
        verdict.findings[0]
    );
}

#[test]
fn workers_that_take_and_give_back_in_each_epoch_do_not_grow() {
    let mut run = Run::new();
    let settings = LoaderSettings { workers: 1, ..LoaderSettings::default() };
    let message = AgentMessage::Loader(Box::new(settings));
    run.event(0.2, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message });
    for epoch in 0..3 {
        let (pid, begins) = (300 + epoch, 1.0 + 20.0 * f64::from(epoch));
        run.process(begins, pid, MAIN, Role::LoaderWorker(None), limits(), 1000);
        for second in 0..20 {
            let at = begins + f64::from(second);
            let worker = sized(pid, 50.0 + 10.0 * f64::from(second), 50.0, 3000.0 + 10.0 * f64::from(second));
            run.tick(at, vec![sized(MAIN, 100.0, 50.0, 3000.0), worker], |_| {});
        }
    }
    is_left_in_peace(&run.finish(60.5, Ending::Exited(0)).verdict(), "epochs");
}

#[test]
fn the_address_space_is_a_limit_of_the_process_that_grows() {
    let mut run = Run::new();
    let narrow = ullage_model::ResourceLimits { address_space: Limit::At(3300 * MIB), ..limits() };
    run.process(0.0, MAIN, 1, Role::Main, narrow, 1000);
    for at in ticks(60.0, 1.0) {
        run.tick(at, vec![sized(MAIN, 100.0 + at, 100.0, 3100.0 + at)], |_| {});
    }
    is_reported(&run.finish(60.2, Ending::Exited(0)).verdict(), "140 MiB of address space left");
}

/// A helper that grows by 560 MiB in 20 seconds, beside a main that grows by so many MiB a second.
fn helper_that_grows(main: f64) -> Run {
    let mut run = Run::new();
    run.process(0.2, HELPER, MAIN, Role::Helper, limits(), 1000);
    for at in ticks(20.0, 1.0) {
        let grown = 20.0 + 28.0 * at;
        let own = 40.0 + main * at;
        run.tick(
            at,
            vec![sized(MAIN, own, 10.0, 900.0 + own), sized(HELPER, grown, 10.0, 900.0 + grown)],
            |sample| {
                sample.cgroups = vec![group("/job", ((40.0 + grown) * MIB as f64) as u64, 620 * MIB, 0, 0)];
            },
        );
    }
    run
}

#[test]
fn of_a_helper_that_grew_until_the_kernel_killed_it_the_kill_alone_is_reported() {
    let mut killed = helper_that_grows(0.0);
    killed.ended(20.2, HELPER, Ending::Signaled(9));
    killed.tick(20.5, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", 40 * MIB, 620 * MIB, 1, 90)];
    });
    assert_eq!(causes(&killed.finish(21.0, Ending::Exited(0)).verdict()), ["invisible-child-oom"]);
    let lived = helper_that_grows(0.0).finish(20.2, Ending::Exited(0)).verdict();
    assert_eq!(causes(&lived), [CAUSE]);
}

#[test]
fn of_two_that_grew_and_one_that_was_killed_the_other_is_reported() {
    let mut killed = helper_that_grows(12.0);
    killed.ended(20.2, HELPER, Ending::Signaled(9));
    killed.tick(20.5, vec![sized(MAIN, 286.0, 10.0, 1186.0)], |sample| {
        sample.cgroups = vec![group("/job", 40 * MIB, 620 * MIB, 1, 90)];
    });
    let verdict = killed.finish(21.0, Ending::Exited(0)).verdict();
    let other = verdict
        .findings
        .iter()
        .find(|finding| finding.cause == CAUSE)
        .unwrap_or_else(|| panic!("{:?}", causes(&verdict)));
    assert!(other.title.contains("by 12 MiB a second"), "{}", other.title);
    assert_eq!(other.process.as_ref().map(|process| process.id.pid), Some(MAIN));
    assert!(!sentences(other).contains("other process"), "{}", sentences(other));
}

#[test]
fn of_a_program_of_another_language_it_is_said_that_no_agent_can_be_inside() {
    for (name, other) in [("evaluator", true), ("python3.12", false)] {
        let mut run = Run::new();
        run.facts.agent = true;
        let facts = ProcessFacts {
            id: id(HELPER),
            parent: MAIN,
            uid: Measured::Known(1000),
            command_line: vec![format!("/opt/bin/{name}"), "--games".into()],
            comm: name.into(),
            limits: Measured::Known(limits()),
            cgroups: vec!["0::/job".into()],
            role: Role::Helper,
            seccomp: Measured::default(),
            cores_allowed: Measured::default(),
            forked_from: None,
        };
        run.event(0.2, EventKind::ProcessSeen { facts: Box::new(facts) });
        for at in ticks(20.0, 1.0) {
            let grown = 20.0 + 28.0 * at;
            let mut helper = sized(HELPER, grown, 10.0, 900.0 + grown);
            helper.comm = name.into();
            run.tick(at, vec![sized(MAIN, 40.0, 10.0, 940.0), helper], |_| {});
        }
        let verdict = run.finish(20.2, Ending::Exited(0)).verdict();
        is_reported(&verdict, name);
        let finding = &verdict.findings[0];
        assert_eq!(sentences(finding).contains("is no Python program"), other, "{}", sentences(finding));
        assert_eq!(finding.fixes[0].command.contains("heaptrack"), other);
    }
}

#[test]
fn an_interpreter_that_is_taken_down_slowly_gives_back_nothing_of_its_run() {
    let ends = |seconds: f64, says_so: bool| {
        let mut run = Run::new();
        for at in ticks(40.0, 1.0) {
            run.tick(at, vec![sized(MAIN, 100.0 + 10.0 * at, 100.0, 3000.0)], |_| {});
        }
        if says_so {
            said(&mut run, 40.0, MAIN);
        }
        for step in (1..).map(f64::from).take_while(|step| *step <= seconds) {
            let left = 300.0 * (1.0 - step / (seconds + 1.0));
            run.tick(40.0 + step, vec![sized(MAIN, left, 100.0, 3000.0)], |_| {});
        }
        run.finish(40.5 + seconds, Ending::Exited(0)).verdict()
    };
    for seconds in [1.0, 3.0, 8.0] {
        is_reported(&ends(seconds, true), &format!("{seconds} s"));
    }
    // What the program itself freed while it ran.
    is_left_in_peace(&ends(8.0, false), "freed");
}

#[test]
fn what_ended_and_was_not_reaped_grows_no_more() {
    for says_so in [false, true] {
        let mut run = Run::new();
        let main = || sized(MAIN, 50.0, 100.0, 3000.0);
        for at in ticks(100.0, 1.0) {
            let mut child = sized(HELPER, 100.0 + 10.0 * at, 100.0, 3000.0);
            child.parent = MAIN;
            if at > 40.0 {
                child.state = ProcessState::Zombie;
                child.memory = Measured::Missing(ullage_model::Missing::Vanished);
            }
            run.tick(at, vec![main(), child], |_| {});
            if says_so && at == 40.0 {
                said(&mut run, at, HELPER);
            }
        }
        is_left_in_peace(&run.finish(100.5, Ending::Exited(0)).verdict(), &format!("said: {says_so}"));
    }
}

fn said(run: &mut Run, at: f64, pid: i32) {
    let message =
        AgentMessage::Bye { figures: Default::default(), retained_by_iterators: Default::default() };
    run.event(at + 0.2, EventKind::Agent { id: Some(id(pid)), pid, message });
}

#[test]
fn what_works_on_for_long_after_its_last_message_is_read_as_ever() {
    let mut run = Run::new();
    for at in ticks(600.0, 1.0) {
        // It loads, says its last word, falls, and serves for ten minutes.
        let private = if at <= 20.0 { 100.0 + 40.0 * at } else { 300.0 };
        run.tick(at, vec![sized(MAIN, private, 100.0, 3000.0)], |_| {});
        if at == 20.0 {
            said(&mut run, at, MAIN);
        }
    }
    is_left_in_peace(&run.finish(600.5, Ending::Exited(0)).verdict(), "a server");
}
