//! Of two accounts of one growth, the nearer to its cause stands first.

use super::build::*;
use std::collections::BTreeMap;
use ullage_model::{
    AgentMessage, Backlog, Bytes, Census, Ending, EventKind, GraphGradients, HeldGraph, Measured,
    ProcessMemory, ProcessReading, Retainer, Severity, TensorCount, Verdict, Weight,
};

/// Main grows by 10 MiB a second for 40 s. `said`: what the agent says, and at which second.
fn verdict_of(said: &[(i32, AgentMessage)]) -> Verdict {
    let mut run = Run::new();
    for second in 0..=40 {
        let at = 1.0 + f64::from(second);
        run.tick(at, vec![grown(200 + 10 * second as u64)], |_| {});
        for (_, message) in said.iter().filter(|(time, _)| *time == second) {
            run.event(at, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message: message.clone() });
        }
    }
    run.finish(41.5, Ending::Exited(0));
    run.verdict()
}

fn grown(mib: u64) -> ProcessReading {
    let mut reading = reading(MAIN, 1, "python");
    reading.memory = Measured::Known(ProcessMemory {
        anonymous: Bytes(mib * MIB),
        file: Bytes(100 * MIB),
        ..ProcessMemory::default()
    });
    reading
}

fn figures(used: u64, free: u64) -> AgentMessage {
    let all = [
        ("anonymous", (used + free) * MIB),
        ("malloc_used", used * MIB),
        ("malloc_free", free * MIB),
        ("malloc_free_main", free * MIB),
        ("malloc_trimmable", free / 8 * MIB),
        ("malloc_arenas", 2),
    ];
    let figures: BTreeMap<String, f64> =
        all.iter().map(|(name, value)| ((*name).to_owned(), *value as f64)).collect();
    AgentMessage::Memory { figures }
}

fn census(number: u32, more: Census) -> AgentMessage {
    AgentMessage::Census(Box::new(Census { number, grown: 50 * MIB, sees_saved: true, ..more }))
}

#[test]
fn a_graph_that_pins_a_heap_stands_before_what_malloc_holds_free_below_it() {
    let graph = |more_bytes: u64| HeldGraph {
        name: "positions".into(),
        operations: 19_000,
        before: 7_500,
        more_bytes,
        of_bytes: 110 * MIB,
        ..HeldGraph::default()
    };
    let heap = [(1, figures(150, 10)), (39, figures(260, 340))];
    let alone = verdict_of(&heap);
    assert_eq!(causes(&alone), ["glibc-dynamic-mmap-threshold"]);
    let with = |heap: &[(i32, AgentMessage)], more_bytes: u64| {
        let grows = Census { graphs: vec![graph(more_bytes)], grown: 110 * MIB, ..Census::default() };
        let censuses = [(10, census(1, Census::default())), (20, census(2, grows))];
        verdict_of(&[heap, censuses.as_slice()].concat())
    };
    let verdict = with(&heap, 16 * MIB);
    assert_eq!(causes(&verdict), ["accumulate-tensors-with-graph"]);
    let pinned = verdict.findings.iter().find(|finding| finding.cause == "glibc-dynamic-mmap-threshold");
    let pinned = pinned.expect("it stays, as a note");
    assert!(pinned.severity == Severity::Note && verdict.findings[0].is_cause_of(pinned), "{verdict:?}");
    // Nearly all that came is free: a graph of a few MiB is not what pins it.
    let all_free = [(1, figures(150, 10)), (39, figures(152, 448))];
    assert_eq!(causes(&with(&all_free, 3 * MIB)), ["glibc-dynamic-mmap-threshold"]);
}

#[test]
fn what_stays_in_a_cache_stands_before_what_malloc_holds_free_around_it_in_arenas() {
    let arenas = |used: u64, free: u64| match figures(used, free) {
        AgentMessage::Memory { mut figures } => {
            figures.insert("malloc_free_main".into(), 0.0);
            figures.insert("malloc_arenas".into(), 3.0);
            AgentMessage::Memory { figures }
        }
        other => other,
    };
    let with = |used: u64, more: u64| {
        let states = Retainer {
            name: "context.states".into(),
            type_name: "dict".into(),
            length: 208,
            before: Some(88),
            element: "flows.State".into(),
            more_bytes: more * MIB,
            bytes: 2 * more * MIB,
            of_bytes: 110 * MIB,
            ..Retainer::default()
        };
        let grows = Census { retainers: vec![states], grown: 110 * MIB, ..Census::default() };
        let heap = [(1, arenas(150, 10)), (39, arenas(used, 600 - used))];
        verdict_of(&[&heap, &[(10, census(1, Census::default())), (20, census(2, grows))][..]].concat())
    };
    // Of 440 MiB that came, 140 are in use.
    let verdict = with(300, 36);
    assert_eq!(causes(&verdict), ["unbounded-caches"]);
    let pinned = verdict.findings.iter().find(|finding| finding.cause == "glibc-arenas-per-core");
    let pinned = pinned.expect("it stays, as a note");
    assert!(pinned.severity == Severity::Note && verdict.findings[0].is_cause_of(pinned), "{verdict:?}");
    assert_eq!(causes(&with(300, 5)), ["glibc-arenas-per-core"], "it is little of what is in use");
    assert_eq!(causes(&with(190, 36)), ["glibc-arenas-per-core"], "too little is in use for a warning");
}

#[test]
fn gradients_that_carry_a_graph_stand_before_what_malloc_holds_free_among_them() {
    let with = |heap: &[(i32, AgentMessage)], with_graph: u64| {
        let count = |with_graph| {
            let tensor = "[4, 3, 256, 256] float32".into();
            let grads = Some(GraphGradients { with_graph, tensor, warned: false });
            Census { grads, grown: 110 * MIB, tensors: Some(TensorCount::default()), ..Census::default() }
        };
        let censuses = [(10, 1, 2), (20, 2, 40), (30, 3, with_graph)];
        let censuses = censuses.map(|(at, number, graphs)| (at, census(number, count(graphs))));
        verdict_of(&[heap, censuses.as_slice()].concat())
    };
    // Of 400 MiB that came, 260 are free.
    let heap = [(1, figures(150, 10)), (39, figures(300, 300))];
    let verdict = with(&heap, 65);
    assert_eq!(causes(&verdict), ["create-graph-cycle"]);
    assert!(verdict.findings.iter().any(|finding| finding.cause == "glibc-dynamic-mmap-threshold"));
    // Those of a step come and go.
    assert_eq!(causes(&with(&heap, 40)), ["glibc-dynamic-mmap-threshold"]);
    // Nearly all of it is free.
    let heap = [(1, figures(150, 10)), (39, figures(160, 440))];
    assert_eq!(causes(&with(&heap, 65)), ["glibc-dynamic-mmap-threshold"]);
}

#[test]
fn threads_that_never_end_stand_before_what_is_registered_to_end_them() {
    let first = |threads: u32| {
        let callbacks = Retainer {
            name: "TaskManager.join()".into(),
            line: "client.py:56".into(),
            type_name: "callbacks".into(),
            element: "method".into(),
            by_hook: true,
            before: Some(20),
            length: 120,
            bytes: 230 * MIB,
            more_bytes: 200 * MIB,
            own_bytes: 230 * MIB,
            of_bytes: 220 * MIB,
            ..Retainer::default()
        };
        let grows = Census { retainers: vec![callbacks], grown: 250 * MIB, ..Census::default() };
        let mut run = Run::new();
        for second in 0..=40u32 {
            let at = 1.0 + f64::from(second);
            let mut reading = grown(200 + 10 * u64::from(second));
            reading.threads = 1 + threads * second;
            run.tick(at, vec![reading], |_| {});
            let said = [(10, census(1, Census::default())), (30, census(2, grows.clone()))];
            for (_, message) in said.into_iter().filter(|(time, _)| *time == second) {
                run.event(at, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message });
            }
        }
        run.finish(41.5, Ending::Exited(0));
        causes(&run.verdict())[0].to_owned()
    };
    assert_eq!(first(4), "threads-per-task");
    assert_eq!(first(2), "hooks-and-closures-leak", "a thread for some of them only");
}

#[test]
fn a_queue_that_nobody_empties_stands_before_what_leads_to_it() {
    let deep = Retainer {
        name: "task['_children']".into(),
        place: "run(), runners.py:118".into(),
        type_name: "list".into(),
        deep: true,
        before: Some(4_000),
        length: 64_000,
        bytes: 300 * MIB,
        more_bytes: 200 * MIB,
        of_bytes: 220 * MIB,
        ..Retainer::default()
    };
    let grows = Census { retainers: vec![deep], grown: 250 * MIB, ..Census::default() };
    let censuses = [(10, census(1, Census::default())), (30, census(2, grows))];
    let queue = |number: u32, items: u64| {
        let item = Some(Weight { arrays: MIB, ..Weight::default() });
        let backlog = Backlog {
            number: number.into(),
            of: "asyncio.Queue".into(),
            items,
            maxsize: None,
            item,
            age_s: 28.0,
        };
        (30, AgentMessage::Backlog(backlog))
    };
    let with = |queues: &[(i32, AgentMessage)]| verdict_of(&[censuses.as_slice(), queues].concat());
    assert_eq!(causes(&with(&[])), ["accumulate-metrics-outputs"]);
    let verdict = with(&[queue(1, 64), queue(2, 64)]);
    assert_eq!(causes(&verdict), ["queue-backlog-unbounded", "accumulate-metrics-outputs"]);
    let said: String = verdict.findings[0].evidence.iter().map(|one| one.sentence.as_str()).collect();
    assert!(said.contains("1 more of its queues hold about 64 MiB"), "{said}");
    // A small one besides explains nothing of it.
    assert_eq!(causes(&with(&[queue(1, 40)]))[0], "accumulate-metrics-outputs");
}
