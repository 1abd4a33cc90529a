//! What allocators keep, and what is no leak but looks like one: buffers that are filled, mapped datasets, two OpenMP runtimes.

use super::build::*;
use std::collections::BTreeMap;
use ullage_model::cgroup::CgroupMemoryParts;
use ullage_model::{
    AgentMessage, Bytes, Ending, EventKind, Facts, Finding, Measured, ProcessReading, Severity, Status,
    Verdict,
};

const SECONDS: u64 = 60;

/// The main program with so many MiB private, of files, and of address space.
fn main_with(anonymous: u64, file: u64, space: u64) -> ProcessReading {
    let mut main = reading(MAIN, 1, "python");
    if let Measured::Known(memory) = &mut main.memory {
        memory.anonymous = Bytes(anonymous * MIB);
        memory.file = Bytes(file * MIB);
        memory.virtual_size = Bytes(space * MIB);
    }
    main
}

/// A minute of it.
fn run(main: impl Fn(u64) -> ProcessReading) -> Run {
    let mut run = Run::new();
    for second in 1..=SECONDS {
        run.tick(second as f64, vec![main(second)], |_| {});
    }
    run
}

/// What the agent in it said: MiB, but for `blocks` and `malloc_arenas`.
fn memory_reading(run: &mut Run, at: f64, figures: &[(&str, u64)]) {
    let plain = |name: &str| name == "blocks" || name == "malloc_arenas";
    let figures: BTreeMap<String, f64> = figures
        .iter()
        .map(|(name, value)| ((*name).to_owned(), if plain(name) { *value } else { value * MIB } as f64))
        .collect();
    run.event(
        at,
        EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message: AgentMessage::Memory { figures } },
    );
}

fn is_made_of(run: &mut Run, facts: &[(&str, &str)]) {
    let facts: Facts = facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    run.event(
        2.0,
        EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message: AgentMessage::Inside { facts } },
    );
}

fn verdict(run: &mut Run) -> Verdict {
    run.finish(SECONDS as f64 + 0.5, Ending::Exited(0));
    run.verdict()
}

fn found<'a>(verdict: &'a Verdict, cause: &str) -> Option<&'a Finding> {
    verdict.findings.iter().find(|finding| finding.cause == cause)
}

const START: &[(&str, u64)] = &[
    ("anonymous", 105),
    ("malloc_used", 40),
    ("malloc_free", 2),
    ("malloc_free_main", 2),
    ("malloc_arenas", 2),
];

/// Free in the first heap and in arenas, at a private memory of 400 MiB.
fn freed(main: u64, arenas: u64) -> Vec<(&'static str, u64)> {
    vec![
        ("anonymous", 400),
        ("malloc_used", 60),
        ("malloc_free", main + arenas),
        ("malloc_free_main", main),
        ("malloc_arenas", 12),
        ("malloc_trimmable", 270),
    ]
}

#[test]
fn what_an_allocator_retains_explains_no_growth_that_is_many_times_as_large() {
    let mut run = run(|second| main_with(100 + 20 * second, 50, 3000 + 20 * second));
    memory_reading(&mut run, 1.2, START);
    let end = [
        ("anonymous", 1280),
        ("malloc_used", 960),
        ("malloc_free", 320),
        ("malloc_free_main", 310),
        ("malloc_arenas", 12),
        ("malloc_trimmable", 300),
    ];
    memory_reading(&mut run, 59.0, &end);
    let verdict = verdict(&mut run);
    assert!(found(&verdict, "unnamed-growth").is_some());
    let note = found(&verdict, "glibc-dynamic-mmap-threshold").map(|finding| finding.severity);
    assert_eq!(note, Some(Severity::Note));
}

#[test]
fn the_heap_that_retains_most_is_named_and_growth_of_it_is_a_warning() {
    let grows = |end: &[(&str, u64)]| {
        let mut run = run(|second| main_with(100 + 5 * second, 50, 3000 + 5 * second));
        memory_reading(&mut run, 1.2, START);
        memory_reading(&mut run, 59.0, end);
        verdict(&mut run)
    };
    let arenas = grows(&freed(10, 270));
    assert_eq!(causes(&arenas), ["glibc-arenas-per-core"]);
    let first = &arenas.findings[0];
    assert_eq!(first.status(), Status::Supported);
    let said = sentences(first);
    assert!(said.contains("270 MiB free in 11 arenas"), "{said}");
    assert!(
        first.fixes[0].command.contains("MALLOC_ARENA_MAX=2") && first.fixes[1].title.contains("270 MiB")
    );
    let heap = grows(&freed(270, 10));
    assert_eq!(causes(&heap), ["glibc-dynamic-mmap-threshold"]);
    assert!(
        named(&grows(&[("anonymous", 400), ("malloc_used", 350), ("malloc_free", 5)])).is_empty(),
        "in use"
    );
}

#[test]
fn what_goes_back_now_and_then_is_no_growth_where_it_is_high_at_the_end() {
    let of = |low_at: u64| {
        let held = |second: u64| if second == low_at { 130 } else { 100 + 5 * second };
        let mut run = run(|second| main_with(held(second), 50, 3000 + 5 * second));
        memory_reading(&mut run, 1.2, START);
        for second in (4..60).step_by(5) {
            let (anonymous, free) = (held(second), held(second) - 100);
            let figures = [
                ("anonymous", anonymous),
                ("malloc_used", 60),
                ("malloc_free", free),
                ("malloc_free_main", free),
                ("malloc_arenas", 2),
                ("malloc_trimmable", 20),
            ];
            memory_reading(&mut run, second as f64, &figures);
        }
        found(&verdict(&mut run), "glibc-dynamic-mmap-threshold").map(|finding| finding.severity)
    };
    assert_eq!((of(0), of(49)), (Some(Severity::Warning), Some(Severity::Note)));
}

/// A growth by 5 MiB a second from a second on: what of it is free in the first heap and in arenas, in percent.
fn steady_growth(from: u64, main: u64, arenas: u64) -> Verdict {
    let came = |second: u64| 5 * second.saturating_sub(from) * SECONDS / (SECONDS - from);
    let mut run = run(|second| main_with(100 + 2 * came(second), 50, 3000 + 2 * came(second)));
    memory_reading(&mut run, 1.2, START);
    for second in (4..60).step_by(3) {
        let (free_main, free_arenas) = (2 * came(second) * main / 100, 2 * came(second) * arenas / 100);
        let figures = [
            ("anonymous", 100 + 2 * came(second)),
            ("malloc_used", 60 + 2 * came(second) - free_main - free_arenas),
            ("malloc_free", free_main + free_arenas),
            ("malloc_free_main", free_main),
            ("malloc_arenas", 12),
            ("malloc_trimmable", 20),
        ];
        memory_reading(&mut run, second as f64, &figures);
    }
    verdict(&mut run)
}

#[test]
fn a_steady_growth_is_never_healthy_whatever_part_of_it_is_free_and_in_which_heap() {
    for (from, main, arenas) in
        [(0, 40, 0), (0, 5, 35), (0, 55, 0), (0, 90, 0), (0, 50, 45), (35, 90, 0), (40, 60, 35)]
    {
        let verdict = steady_growth(from, main, arenas);
        assert!(!verdict.healthy, "{from} {main} {arenas}: {:?} {:?}", verdict.findings, verdict.growth);
    }
}

#[test]
fn code_that_is_generated_all_along_is_reported_before_the_heap_that_its_cache_holds_open() {
    let first = |code: fn(u64) -> u64| {
        let mut run = run(|second| {
            let mut main = main_with(100 + 10 * second, 50, 3000 + 30 * second);
            if let Measured::Known(mappings) = &mut main.mappings {
                mappings.executable_bytes = Measured::Known(Bytes(code(second) * MIB));
            }
            main
        });
        memory_reading(&mut run, 1.2, START);
        memory_reading(
            &mut run,
            59.0,
            &[
                ("anonymous", 690),
                ("malloc_used", 60),
                ("malloc_free", 500),
                ("malloc_free_main", 490),
                ("malloc_arenas", 2),
            ],
        );
        let verdict = verdict(&mut run);
        let found = verdict.findings.iter().map(|finding| (finding.cause.clone(), finding.severity));
        found.take(2).collect::<Vec<_>>()
    };
    let heap = |severity| ("glibc-dynamic-mmap-threshold".to_owned(), severity);
    let cache = ("onednn-primitive-cache-shapes".to_owned(), Severity::Warning);
    assert_eq!(first(|second| 20 * second), [cache, heap(Severity::Note)], "the cache holds it open");
    assert_eq!(first(|_| 20), [heap(Severity::Warning)]);
}

#[test]
fn what_is_retained_and_stands_still_is_a_note() {
    let mut run = run(|second| main_with(100 + 30 * second.min(10), 50, 3000 + 30 * second.min(10)));
    memory_reading(&mut run, 1.2, START);
    memory_reading(&mut run, 30.0, &freed(10, 270));
    let verdict = verdict(&mut run);
    assert!(verdict.healthy);
    assert_eq!(found(&verdict, "glibc-arenas-per-core").unwrap().severity, Severity::Note);
}

#[test]
fn without_the_agent_nobody_can_know() {
    let mut run = run(|second| main_with(100 + 5 * second, 50, 3000 + 5 * second));
    let verdict = verdict(&mut run);
    assert_eq!(causes(&verdict), ["unnamed-growth"]);
    for cause in ["glibc-arenas-per-core", "glibc-dynamic-mmap-threshold"] {
        assert!(undetermined(&verdict).contains(&cause), "{cause}");
    }
    assert!(!undetermined(&verdict).contains(&"jemalloc-retention"));
}

#[test]
fn another_allocator_in_malloc_s_place_is_asked_itself() {
    let grows = |name: &str| {
        let mut run = run(|second| main_with(100 + 5 * second, 50, 3000 + 5 * second));
        let (used, free) = (format!("{name}_used"), format!("{name}_free"));
        let said = |anonymous, in_use, retained| {
            [
                ("anonymous", anonymous),
                ("malloc_used", 1),
                ("malloc_free", 0),
                (&*used, in_use),
                (&*free, retained),
            ]
            .map(|(name, mib): (&str, u64)| (name, mib))
        };
        memory_reading(&mut run, 1.2, &said(105, 60, 10));
        memory_reading(&mut run, 59.0, &said(400, 70, 290));
        verdict(&mut run)
    };
    assert_eq!(causes(&grows("jemalloc")), ["jemalloc-retention"]);
    assert_eq!(causes(&grows("tcmalloc")), ["tcmalloc-mimalloc-retention"]);
}

#[test]
fn small_objects_that_are_gone_are_a_note_of_python_s_own_allocator() {
    let held = |second| if second < 5 { 80 } else { 300 };
    let mut run = run(|second| main_with(held(second), 50, 3000 + held(second)));
    let malloc = [("malloc_used", 20), ("malloc_free", 1), ("malloc_free_main", 1), ("malloc_arenas", 1)];
    let said = |anonymous, blocks| [&malloc[..], &[("anonymous", anonymous), ("blocks", blocks)]].concat();
    memory_reading(&mut run, 1.2, &said(80, 100_000));
    memory_reading(&mut run, 8.0, &said(300, 2_500_000));
    memory_reading(&mut run, 10.0, &said(295, 110_000));
    let verdict = verdict(&mut run);
    let names: Vec<&str> = verdict.findings.iter().map(|finding| &*finding.cause).collect();
    assert_eq!(names, ["pymalloc-fragmentation"]);
    assert_eq!(verdict.findings[0].severity, Severity::Note);
}

/// Address space in MiB by the second, and what malloc has handed out at the end.
fn fills(space: fn(u64) -> u64, handed_out: u64) -> Run {
    let mut run = run(|second| main_with(100 + 5 * second, 50, space(second)));
    let begin = [("anonymous", 105), ("malloc_used", 40), ("malloc_mapped", 600), ("malloc_free", 0)];
    memory_reading(&mut run, 1.2, &begin);
    let end = [("anonymous", 395), ("malloc_used", 40), ("malloc_mapped", handed_out), ("malloc_free", 0)];
    memory_reading(&mut run, 59.0, &end);
    run
}

const FILLED: &str = "large-preallocation-lazy-touch";

#[test]
fn a_buffer_that_is_filled_is_a_note_and_a_leak_is_none() {
    let lazy = verdict(&mut fills(|_| 3000, 600));
    let note = found(&lazy, FILLED).unwrap();
    assert_eq!((note.severity, note.status()), (Severity::Note, Status::Supported));
    assert!(sentences(note).contains("245 MiB was still untouched"), "{}", sentences(note));
    let of = |space, handed_out| verdict(&mut fills(space, handed_out));
    assert!(found(&of(|second| 3000 + 5 * second, 890), FILLED).is_none(), "its address space grows");
    assert!(found(&of(|_| 3000, 890), FILLED).is_none(), "malloc handed out more");
}

#[test]
fn a_buffer_given_back_at_once_at_the_end_was_seen_before() {
    let mut run = fills(|_| 3000, 600);
    let given_back = [("anonymous", 100), ("malloc_used", 40), ("malloc_mapped", 0), ("malloc_free", 0)];
    memory_reading(&mut run, 59.8, &given_back);
    let note = verdict(&mut run);
    assert_eq!(found(&note, FILLED).map(|note| note.status()), Some(Status::Supported));
}

#[test]
fn a_reading_that_came_before_the_buffer_was_made_says_nothing_of_it() {
    let made_at_second_3 = |second| if second < 3 { 2000 } else { 3000 };
    let mut run = run(|second| main_with(100 + 8 * second, 50, made_at_second_3(second)));
    let malloc = |anonymous, mapped| {
        [("anonymous", anonymous), ("malloc_used", 40), ("malloc_mapped", mapped), ("malloc_free", 0)]
    };
    memory_reading(&mut run, 1.2, &malloc(105, 0));
    memory_reading(&mut run, 59.0, &malloc(570, 1000));
    assert!(found(&verdict(&mut run), FILLED).is_some());
}

/// Readings are a second apart but for the first second, in which a busy machine still loads a library.
#[test]
fn a_buffer_that_was_made_between_two_readings_after_a_library_was_loaded_slowly_is_one() {
    let of = |space: &dyn Fn(f64) -> f64| {
        let mut run = Run::new();
        for at in
            (1..=11).map(|tenth| f64::from(tenth) / 10.0).chain((2..=7).map(|second| f64::from(second) + 0.1))
        {
            let held = if at < 1.2 { 2.0 + 50.0 * at } else { 66.0 + 100.0 * (at - 1.2) };
            run.tick(at, vec![main_with(held as u64, 50, space(at) as u64)], |_| {});
        }
        run.finish(7.3, Ending::Exited(0));
        found(&run.verdict(), FILLED).is_some()
    };
    assert!(of(&|at| if at < 1.2 { 10.0 + 150.0 * at } else { 1000.0 }));
    assert!(!of(&|at| 10.0 + 150.0 * at.min(1.2) + 100.0 * (at - 1.2).max(0.0)), "its address space grows");
}

#[test]
fn readings_that_came_before_the_rise_say_nothing_of_it() {
    // At rest, and so many MiB more in two seconds.
    let steps_at = |from: u64, mib: u64, figures: &[(&str, u64)]| {
        let mut run =
            run(|second| main_with(100 + mib / 2 * (second.clamp(from, from + 2) - from), 50, 3000));
        for at in [1.2, 49.0] {
            memory_reading(&mut run, at, figures);
        }
        found(&verdict(&mut run), FILLED).map(|note| note.status())
    };
    let steps = |mib: u64, figures: &[(&str, u64)]| steps_at(50, mib, figures);
    let malloc = [("anonymous", 100), ("malloc_used", 90), ("malloc_mapped", 0), ("malloc_free", 0)];
    assert_eq!(steps_at(1, 400, &malloc), None, "touched as it starts");
    assert_eq!(steps(200, &malloc), None, "arenas of four threads hold as much");
    assert_eq!(steps(400, &malloc), Some(Status::Hypothesis));
    let arrow = [&malloc[..], &[("arrow_used", 10), ("arrow_peak", 60)]].concat();
    assert_eq!(steps(400, &arrow), None, "its allocator takes address space by the gigabyte");
}

/// Then it is the huge pages that fill it: one for each touch.
#[test]
fn a_buffer_that_is_filled_with_huge_pages_at_a_limit_is_theirs() {
    for (huge, expected) in [(300, "thp-always-rss-bloat"), (10, FILLED)] {
        let mut run = fills(|_| 3000, 600);
        run.facts.machine.transparent_hugepages = Measured::Known("always".into());
        let mut group = group("/job", 400 * MIB, 410 * MIB, 0, 0);
        if let Measured::Known(memory) = &mut group.memory {
            memory.anonymous_huge = Measured::Known(Bytes(huge * MIB));
            let parts = CgroupMemoryParts { anonymous: Bytes(390 * MIB), ..CgroupMemoryParts::default() };
            memory.parts = Measured::Known(parts);
        }
        run.tick(60.2, vec![main_with(400, 50, 3000)], |sample| sample.cgroups = vec![group]);
        let verdict = verdict(&mut run);
        let causes: Vec<&str> = verdict.findings.iter().map(|finding| &*finding.cause).collect();
        assert_eq!(causes, [expected], "{huge} MiB in huge pages");
    }
}

#[test]
fn pages_of_a_data_file_are_a_note_and_libraries_are_none() {
    let reads = |data: u64| {
        let mut run = run(|second| {
            let mut main = main_with(100, 50 + 6 * second, 3000);
            if let Measured::Known(mappings) = &mut main.mappings {
                mappings.data_file_bytes = Bytes(data * MIB);
            }
            main
        });
        verdict(&mut run)
    };
    let verdict = reads(500);
    assert!(verdict.healthy);
    assert_eq!(found(&verdict, "mmap-dataset-rss-illusion").unwrap().status(), Status::Established);
    let slow_disk = super::allocators::verdict(&mut run(|second| main_with(100, 50 + 6 * second, 3000)));
    assert!(found(&slow_disk, "mmap-dataset-rss-illusion").is_none(), "libraries that come slowly");
    let mut still = run(|_| main_with(100, 400, 3000));
    assert!(super::allocators::verdict(&mut still).findings.is_empty());
}

#[test]
fn two_openmp_runtimes_are_a_note_and_one_is_none() {
    let loads = |libraries: &str| {
        let mut run = run(|_| main_with(100, 50, 3000));
        is_made_of(&mut run, &[("loaded.openmp", libraries)]);
        verdict(&mut run)
    };
    let two = loads("torch:libgomp.so.1, other:libiomp5.so");
    assert_eq!(found(&two, "dual-openmp-runtime").unwrap().severity, Severity::Note);
    assert!(loads("torch:libgomp.so.1").findings.is_empty() && loads("none").findings.is_empty());
}

/// Constructed: no torch of today does it.
#[test]
fn an_old_torch_on_a_processor_without_avx512_may_leak_in_mkl() {
    let grows = |version: &str, capability: &str, threads: &str| {
        let mut run = run(|second| main_with(100 + 6 * second, 50, 3000 + 6 * second));
        let facts = [
            ("torch.version", version),
            ("torch.mkl", "2020.0.0"),
            ("torch.cpu_capability", capability),
            ("env.OMP_NUM_THREADS", threads),
        ];
        is_made_of(&mut run, &facts);
        verdict(&mut run)
    };
    let old = grows("1.8.1", "AVX2", "8");
    let finding = found(&old, "mkl-openmp-isa-leak").unwrap();
    assert_eq!((finding.severity, finding.status()), (Severity::Warning, Status::Hypothesis));
    for other in [("1.13.0", "AVX2", "8"), ("1.8.1", "AVX512", "8"), ("1.8.1", "AVX2", "1")] {
        assert!(found(&grows(other.0, other.1, other.2), "mkl-openmp-isa-leak").is_none(), "{other:?}");
    }
}
