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

/// One grows to its end by what is free, beside a larger one that comes and goes.
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
}

#[test]
fn processes_that_each_grow_a_little_are_a_growth_together_and_a_large_one_is_one_too() {
    let ranks = |number: i32, base: u64, each: u64| {
        let mut run = Run::new();
        for rank in 0..number {
            run.process(0.1, 300 + rank, MAIN, Role::Rank(rank as u32), limits(), 1000);
        }
        for t in 1..=SECONDS {
            let came = each * t / SECONDS;
            let all = (0..number).map(|rank| with(300 + rank, base + came)).chain([with(MAIN, 50)]).collect();
            run.tick(t as f64, all, |_| {});
            if t % 3 == 1 {
                (0..number).for_each(|rank| {
                    said(&mut run, 300 + rank, t as f64 + 0.2, base + came, base / 4 + came * 9 / 10, 0);
                });
            }
        }
        run.finish(60.5, Ending::Exited(0)).verdict().healthy
    };
    assert!(!ranks(16, 200, 250) && !ranks(8, 200, 120), "together");
    assert!(!ranks(1, 8000, 1500), "beside much that was there before");
}

#[test]
fn workers_that_were_ended_long_ago_and_a_peak_at_load_decide_nothing() {
    let mut run = Run::new();
    for pid in 300..304 {
        run.process(2.0, pid, MAIN, Role::PoolWorker, limits(), 1000);
    }
    for t in 1..=SECONDS {
        let mut all = vec![with(MAIN, 300)];
        let workers = 300..304;
        if (3..=20).contains(&t) {
            all.extend(workers.clone().map(|pid| with(pid, 100 + 20 * (t - 3))));
        }
        run.tick(t as f64, all, |_| {});
        if (3..=20).contains(&t) && t % 3 == 1 {
            workers
                .clone()
                .for_each(|pid| said(&mut run, pid, t as f64 + 0.2, 100 + 20 * (t - 3), 18 * (t - 3), 0));
        }
        if t == 20 {
            workers.for_each(|pid| {
                run.ended(20.5, pid, Ending::Signaled(15));
            });
        }
    }
    assert!(run.finish(60.5, Ending::Exited(0)).verdict().healthy, "a pool of which the job took leave");

    let mut run = Run::new();
    for t in 1..=SECONDS {
        let held = if t == 40 { 450 } else { 400 + 20 * t };
        let mut main = with(MAIN, held);
        if let Measured::Known(memory) = &mut main.memory {
            memory.peak_resident = Bytes(4096 * MIB);
        }
        run.tick(t as f64, vec![main], |_| {});
    }
    assert!(
        !run.finish(60.5, Ending::Exited(0)).verdict().healthy,
        "one trim, below a mark that the load had set"
    );
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
