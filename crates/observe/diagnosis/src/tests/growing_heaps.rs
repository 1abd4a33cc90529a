//! Growth of which most is free inside malloc: is it a growth that goes on, whatever part of it is free, where, and beside whom?

use super::build::*;
use std::collections::BTreeMap;
use ullage_model::{
    AgentMessage, Bytes, Ending, EventKind, Measured, ProcessMemory, ProcessReading, Role, Severity, Verdict,
};

const SECONDS: u64 = 60;

fn with(pid: i32, anonymous: u64) -> ProcessReading {
    let mut main = reading(pid, if pid == MAIN { 1 } else { MAIN }, "python");
    main.memory = Measured::Known(ProcessMemory {
        anonymous: Bytes(anonymous * MIB),
        file: Bytes(50 * MIB),
        virtual_size: Bytes((3000 + anonymous) * MIB),
        ..ProcessMemory::default()
    });
    main
}

fn said(run: &mut Run, pid: i32, at: f64, anonymous: u64, main: u64, arenas: u64) {
    let all = [
        ("anonymous", anonymous * MIB),
        ("malloc_used", (anonymous - main - arenas - 40) * MIB),
        ("malloc_free", (main + arenas) * MIB),
        ("malloc_free_main", main * MIB),
        ("malloc_arenas", 12),
        ("malloc_trimmable", 20 * MIB),
    ];
    let figures: BTreeMap<String, f64> =
        all.iter().map(|(name, value)| ((*name).to_owned(), *value as f64)).collect();
    let message = AgentMessage::Memory { figures };
    run.event(at, EventKind::Agent { id: Some(id(pid)), pid, message });
}

/// anonymous and free of first heap, of arenas, by second; figures every `apart` seconds.
fn heap(apart: usize, of: impl Fn(u64) -> (u64, u64, u64)) -> Verdict {
    let mut run = Run::new();
    for second in 1..=SECONDS {
        let (anonymous, main, arenas) = of(second);
        run.tick(second as f64, vec![with(MAIN, anonymous)], |_| {});
        if second == 1 || (second as usize).is_multiple_of(apart) {
            said(&mut run, MAIN, second as f64 + 0.2, anonymous, main, arenas);
        }
    }
    run.finish(SECONDS as f64 + 0.5, Ending::Exited(0));
    run.verdict()
}

/// A rank grows by 30 MiB a second from 40 s on to the end, 90 % of it free; another one by 1 MiB a second from the start.
#[test]
fn another_that_grows_a_little_from_the_start_hides_one_that_grows_much_late() {
    let of = |slow: u64| {
        let mut run = Run::new();
        for pid in [300, 301] {
            run.process(0.1, pid, MAIN, Role::Rank((pid - 300) as u32), limits(), 1000);
        }
        for t in 1..=SECONDS {
            let (a, b) = (slow * t, 30 * t.saturating_sub(40));
            run.tick(t as f64, vec![with(MAIN, 50), with(300, 100 + a), with(301, 200 + b)], |_| {});
            if t % 3 == 1 || t == 60 {
                said(&mut run, 300, t as f64 + 0.2, 100 + a, a * 9 / 10, 0);
                said(&mut run, 301, t as f64 + 0.2, 200 + b, b * 9 / 10, 0);
            }
        }
        run.finish(60.5, Ending::Exited(0));
        run.verdict().healthy
    };
    assert_eq!((of(0), of(1)), (false, false));
}

#[test]
fn a_straight_line_is_not_healthy_where_its_second_half_is_free() {
    // 10 MiB a second, never back; 270 MiB in use first, then free memory.
    let free_later = heap(3, |t| (200 + 10 * t, (10 * t).saturating_sub(270), 0));
    // 4.5 MiB a second stay in use; what is free was given back once, for a second.
    let dip = heap(3, |t| {
        let free = if t == 48 { 30 } else { 11 * t / 2 };
        (200 + 9 * t / 2 + free, free, 0)
    });
    assert_eq!((free_later.healthy, dip.healthy), (false, false));
}

#[test]
fn no_heap_alone_is_a_fifth() {
    let two_heaps = heap(3, |t| (400 + 10 * t, 3 * t, 3 * t));
    let large = heap(3, |t| (1500 + 10 * t, 13 * t / 2, 0));
    assert_eq!((two_heaps.healthy, large.healthy), (false, false));
}

/// One grows to its end by what is free, beside a larger one that comes and goes; and workers of a loader that all grow so.
#[test]
fn the_process_that_grows_is_named_and_not_the_one_that_retains_most() {
    let mut run = Run::new();
    for rank in [0, 1] {
        run.process(0.1, 300 + rank as i32, MAIN, Role::Rank(rank), limits(), 1000);
    }
    for t in 1..=SECONDS {
        let (came, swing) = (8 * t, if t % 6 == 3 { 100 } else { 700 });
        run.tick(t as f64, vec![with(MAIN, 50), with(300, 200 + came), with(301, 200 + swing)], |_| {});
        if t % 3 == 1 || t % 6 == 3 {
            said(&mut run, 300, t as f64 + 0.2, 200 + came, came * 9 / 10, 0);
            said(&mut run, 301, t as f64 + 0.2, 200 + swing, swing * 9 / 10, 0);
        }
    }
    run.finish(60.5, Ending::Exited(0));
    let verdict = run.verdict();
    let first = &verdict.findings[0];
    let of = first.process.as_ref().map(|process| process.id.pid);
    assert_eq!(
        (first.cause.as_str(), first.severity, of),
        ("glibc-dynamic-mmap-threshold", Severity::Warning, Some(300))
    );

    let mut run = Run::new();
    for worker in 0..4 {
        run.process(0.1, 300 + worker as i32, MAIN, Role::LoaderWorker(Some(worker)), limits(), 1000);
    }
    for t in 1..=SECONDS {
        let all = (300..304).map(|pid| with(pid, 200 + 8 * t)).chain([with(MAIN, 200)]).collect();
        run.tick(t as f64, all, |_| {});
        if t % 3 == 1 {
            (300..304).for_each(|pid| said(&mut run, pid, t as f64 + 0.2, 200 + 8 * t, 7 * t, 0));
        }
    }
    run.finish(60.5, Ending::Exited(0));
    let verdict = run.verdict();
    assert_eq!((causes(&verdict)[0], verdict.healthy), ("glibc-dynamic-mmap-threshold", false));
}

#[test]
fn what_goes_back_while_the_agent_does_not_read_it_is_no_growth() {
    let of = |every: u64| {
        let mut run = Run::new();
        for t in 1..=SECONDS {
            let held = if t % every < 2 && t > 2 { 130 } else { 200 + 10 * t };
            run.tick(t as f64, vec![with(MAIN, held)], |_| {});
            if t == 1 || t % 5 == 4 {
                said(&mut run, MAIN, t as f64 + 0.2, held, held - 110, 0);
            }
        }
        run.finish(60.5, Ending::Exited(0)).verdict().healthy
    };
    assert_eq!((of(1000), of(10)), (false, true));
}
