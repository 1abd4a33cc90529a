//! The rules about what holds a process's growth: who is named, when it is a warning, and when nothing may be said.

use super::build::*;
use ullage_model::{
    AgentMessage, Backlog, Bytes, Census, Ending, EventKind, Garbage, GraphGradients, HeldGraph, Item,
    Measured, ProcessMemory, Retainer, Role, Severity, Site, Sites, Status, TensorCount, TensorGroup,
    TorchCount, Verdict, Weight,
};

/// Main holds 200 MiB, and so many more at second `t` of 40. The agent takes a census at 10 s and one at 20 s, in which
/// 100 MiB came.
fn run(more: impl Fn(f64) -> u64, census: Option<Census>) -> Verdict {
    let first = Census { number: 1, grown: 50 * MIB, ..Census::default() };
    let all = [(10, Some(first)), (20, census)];
    let said = all.into_iter().filter_map(|(at, census)| Some((at, AgentMessage::Census(Box::new(census?)))));
    verdict_of(more, said.collect())
}

/// What the agent says, and at which second.
fn verdict_of(more: impl Fn(f64) -> u64, said: Vec<(i32, AgentMessage)>) -> Verdict {
    verdict_with(|second| (more(second), 0), said)
}

/// The same, of private MiB and shared ones.
fn verdict_with(more: impl Fn(f64) -> (u64, u64), said: Vec<(i32, AgentMessage)>) -> Verdict {
    let mut run = Run::new();
    for second in 0..=40 {
        let at = 1.0 + f64::from(second);
        let mut reading = reading(MAIN, 1, "python");
        let (private, shared) = more(f64::from(second));
        reading.memory = Measured::Known(ProcessMemory {
            anonymous: Bytes((200 + private) * MIB),
            shared: Bytes(shared * MIB),
            file: Bytes(100 * MIB),
            ..ProcessMemory::default()
        });
        run.tick(at, vec![reading], |_| {});
        for (_, message) in said.iter().filter(|(time, _)| *time == second) {
            let message = message.clone();
            run.event(at, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message });
        }
    }
    let raised = said.iter().any(|(_, message)| matches!(message, AgentMessage::Exception(_)));
    run.finish(41.5, Ending::Exited(i32::from(raised)));
    run.verdict()
}

fn in_turn(all: &[Census]) -> Vec<(i32, AgentMessage)> {
    let number = |place: usize| u32::try_from(place + 1).unwrap();
    let numbered = all.iter().enumerate().map(|(place, one)| Census { number: number(place), ..one.clone() });
    (10..).step_by(10).zip(numbered.map(|one| AgentMessage::Census(Box::new(one)))).collect()
}

/// The severity of a dict, or of garbage, that holds most of what comes, 60 MiB, to each of these workers; they were forked with
/// 300 MiB.
fn of_workers(pids: &[i32], cause: &str) -> Severity {
    let garbage = (cause == "gc-disabled-or-deferred").then_some(Garbage {
        objects: 80,
        inspected: 80,
        garbage: 77,
        bytes: 42 * MIB,
        old: false,
    });
    let mut run = Run::new();
    for pid in pids {
        run.process(0.5, *pid, MAIN, Role::PoolWorker, limits(), 1000);
        if let Some(Item::Event(event)) = run.items.last_mut() {
            if let EventKind::ProcessSeen { facts } = &mut event.what {
                facts.forked_from = Some(id(MAIN));
            }
        }
    }
    for second in 0..=40 {
        let at = 1.0 + f64::from(second);
        let sized = |pid, mib: f64| {
            let mut process = reading(pid, if pid == MAIN { 1 } else { MAIN }, "python");
            let anonymous = Bytes((mib * MIB as f64) as u64);
            process.memory = Measured::Known(ProcessMemory { anonymous, ..ProcessMemory::default() });
            process
        };
        let workers = pids.iter().map(|pid| sized(*pid, 300.0 + 1.5 * f64::from(second)));
        run.tick(at, std::iter::once(sized(MAIN, 300.0)).chain(workers).collect(), |_| {});
        for pid in pids.iter().filter(|_| second == 10 || second == 30) {
            let memo = Retainer { more_bytes: 28 * MIB, of_bytes: 30 * MIB, ..retainer("memo") };
            let retainers = if second == 30 && garbage.is_none() { vec![memo] } else { Vec::new() };
            let census = Census {
                number: second as u32 / 10,
                grown: 15 * MIB * (second as u64 / 10),
                garbage: garbage.clone().filter(|_| second == 30),
                collects: true,
                retainers,
                ..Census::default()
            };
            let message = AgentMessage::Census(Box::new(census));
            run.event(at, EventKind::Agent { id: Some(id(*pid)), pid: *pid, message });
        }
    }
    run.finish(41.5, Ending::Exited(0));
    let verdict = run.verdict();
    let found = verdict.findings.iter().find(|finding| finding.cause == cause);
    found.unwrap_or_else(|| panic!("{:?}", verdict.findings)).severity
}

#[test]
fn what_grows_alike_in_several_workers_is_as_much_as_all_of_it() {
    for cause in ["unbounded-caches", "gc-disabled-or-deferred"] {
        assert_eq!(of_workers(&[300], cause), Severity::Note);
        assert_eq!(of_workers(&[300, 301], cause), Severity::Warning, "120 MiB beside 300 that they share");
    }
}

#[test]
fn an_earlier_census_counts_where_the_last_had_no_time_for_all() {
    let grown = |mib: u64| Census { grown: mib * MIB, ..Census::default() };
    let named = Census { retainers: vec![retainer("outputs")], ..grown(150) };
    let cut = Census { cut: true, ..grown(180) };
    let verdict = verdict_of(steady, in_turn(&[grown(50), named.clone(), cut]));
    let (cause, severity, status, said) = one(&verdict);
    assert_eq!((cause, severity), ("accumulate-metrics-outputs", Severity::Warning));
    // What came since counts as not explained.
    assert!(status == Status::Established && said.contains("90 MiB of 130 MiB"), "{said}");
    let emptied = verdict_of(steady, in_turn(&[grown(50), named, grown(180)]));
    assert_eq!(causes(&emptied), ["unnamed-growth"]);
}

#[test]
fn what_retains_shared_memory_that_rises_is_named() {
    let census = |grown: u64, named: bool| Census {
        grown: grown * MIB,
        retainers: if named { vec![retainer("batches")] } else { Vec::new() },
        ..Census::default()
    };
    let run = |shared: &dyn Fn(f64) -> u64| {
        verdict_with(|second| (0, shared(second)), in_turn(&[census(50, false), census(150, true)]))
    };
    let verdict = run(&|second| steady(second));
    let (cause, severity, status, said) = one(&verdict);
    assert_eq!(
        (cause, severity, status),
        ("accumulate-metrics-outputs", Severity::Warning, Status::Established)
    );
    assert!(said.contains("of shared memory in the last"), "{said}");
    assert!(causes(&run(&|second| steady(second.min(12.0)))).is_empty());
}

#[test]
fn tensors_of_one_shape_that_are_most_of_what_came_need_no_name() {
    let counted = |count: u64, before: Option<u64>, shape: &str| {
        let group = TensorGroup {
            tensors: shape.into(),
            count,
            bytes: count * MIB,
            count_before: before,
            bytes_before: before.map(|before| before * MIB),
        };
        TensorCount { groups: vec![group], ..TensorCount::default() }
    };
    let run = |count, shape| {
        let census = |grown, tensors| Census { grown, tensors: Some(tensors), ..Census::default() };
        let first = census(50 * MIB, counted(10, None, shape));
        verdict_of(steady, in_turn(&[first, census(150 * MIB, counted(count, Some(10), shape))]))
    };
    for (shape, cause) in [
        ("[512, 512] float32", ("accumulate-metrics-outputs", Status::Hypothesis)),
        ("[512, 512] float32 with graph", ("accumulate-tensors-with-graph", Status::Supported)),
    ] {
        let verdict = run(90, shape);
        let (found, severity, status, said) = one(&verdict);
        assert_eq!(((found, status), severity), (cause, Severity::Warning));
        assert!(said.contains(&format!("90 tensors {shape} hold 90 MiB; there were 10 before")), "{said}");
        assert_eq!(causes(&run(50, shape)), ["unnamed-growth"], "40 of 100 MiB");
    }
}

/// A line allocated so many MiB of 20 that came, and a queue may hold many items.
fn with_a_line(mib: u64, queue: Option<Backlog>) -> Verdict {
    let site = Site { line: "stage2.py:5".into(), bytes: mib * MIB, blocks: mib };
    let came = i64::try_from(20 * MIB).unwrap();
    let sites = Sites { seconds: 2.0, came, bytes: mib * MIB, blocks: mib, sites: vec![site] };
    let mut said = in_turn(&[Census::default(), Census { grown: 100 * MIB, ..Census::default() }]);
    said.push((25, AgentMessage::Sites(sites)));
    said.extend(queue.map(|queue| (38, AgentMessage::Backlog(queue))));
    verdict_of(steady, said)
}

#[test]
fn a_line_that_allocates_most_of_what_came_is_evidence_and_no_cause() {
    let said = |mib| {
        let verdict = with_a_line(mib, None);
        assert_eq!(causes(&verdict), ["unnamed-growth"]);
        sentences(&verdict.findings[0])
    };
    assert!(said(16).starts_with("stage2.py:5 allocated 16 MiB"), "{}", said(16));
    assert!(!said(1).contains("stage2.py:5"));
}

#[test]
fn a_line_that_allocates_stands_back_for_a_queue_that_has_what_it_allocated() {
    let item = Some(Weight { tensors: MIB, ..Weight::default() });
    let of = "queue.Queue".to_owned();
    let queue = Backlog { number: 1, of, items: 150, maxsize: None, item, age_s: 36.0 };
    assert_eq!(causes(&with_a_line(16, Some(queue))), ["queue-backlog-unbounded"]);
}

#[test]
fn gradients_that_carry_a_graph_are_named_where_nothing_else_explains_the_growth() {
    let run = |with_graph, warned, retainers: Vec<Retainer>| {
        let grads = Some(GraphGradients { with_graph, tensor: "[384, 384] float32".into(), warned });
        let first = Census { grown: 50 * MIB, ..Census::default() };
        verdict_of(
            steady,
            in_turn(&[first, Census { grown: 150 * MIB, grads, retainers, ..Census::default() }]),
        )
    };
    for verdict in [run(1, false, vec![]), run(0, true, vec![])] {
        let (cause, severity, status, _) = one(&verdict);
        assert_eq!((cause, severity, status), ("create-graph-cycle", Severity::Warning, Status::Supported));
    }
    assert_eq!(causes(&run(0, false, vec![])), ["unnamed-growth"]);
    assert_eq!(causes(&run(1, true, vec![retainer("outputs")])), ["accumulate-metrics-outputs"]);
}

#[test]
fn a_profiler_that_records_all_along_is_named_where_nothing_else_explains_the_growth() {
    let run_until = |sent: i32, seconds: u64, tensors: f64, retainers: Vec<Retainer>| {
        let profiler =
            TorchCount { what: "profiler".into(), count: seconds, bytes: None, name: String::new() };
        let figures = |at: f64, tensors: f64| {
            let private = (200.0 + 10.0 * at) * MIB as f64;
            let of = |name: &str, bytes: f64| (name.to_owned(), bytes);
            let all = [
                of("anonymous", private),
                of("blocks", 1e5),
                of("malloc_used", private - 50.0 * MIB as f64),
                of("malloc_mapped", 0.0),
                of("malloc_free", 0.0),
                of("tensors", tensors * MIB as f64),
                of("python_large", 0.0),
            ];
            AgentMessage::Memory { figures: all.into() }
        };
        let grown = |number: u32, retainers: Vec<Retainer>| {
            let grown = 75 * u64::from(number) * MIB;
            AgentMessage::Census(Box::new(Census { number, grown, retainers, ..Census::default() }))
        };
        verdict_of(
            steady,
            vec![
                (1, figures(1.0, 0.0)),
                (10, grown(1, Vec::new())),
                (20, grown(2, retainers)),
                (38, figures(38.0, tensors)),
                (sent, AgentMessage::TorchCount(profiler)),
            ],
        )
    };
    let run = |seconds, tensors, retainers| run_until(39, seconds, tensors, retainers);
    let verdict = run(38, 0.0, vec![]);
    let (cause, severity, status, said) = one(&verdict);
    assert_eq!((cause, severity, status), ("profiler-and-debug-hooks", Severity::Warning, Status::Supported));
    assert!(said.contains("for at least 38.0 s without a break"), "{said}");
    assert_eq!(causes(&run(5, 0.0, vec![])), ["unnamed-growth"], "a few steps of it");
    let first = run_until(15, 0, 0.0, vec![]);
    assert_eq!(first.findings[0].cause, "unnamed-growth", "it was due to be told again");
    let sent_at = |sent| run_until(sent, 17, 0.0, vec![]).findings[0].cause.clone();
    assert_eq!(sent_at(35), "profiler-and-debug-hooks", "it was not due to be told again before the end");
    assert_eq!(sent_at(33), "unnamed-growth", "it was due at the last reading, and recorded no more");
    assert_eq!(causes(&run(38, 370.0, vec![])), ["unnamed-growth"], "tensors are no events");
    assert_eq!(one(&run(38, 0.0, vec![retainer("losses")])).0, "accumulate-metrics-outputs");
}

fn steady(t: f64) -> u64 {
    (10.0 * t) as u64
}

fn retainer(name: &str) -> Retainer {
    Retainer {
        name: name.into(),
        place: "train(), train.py:31".into(),
        line: "train.py:27".into(),
        type_name: "list".into(),
        element: "Tensor [128, 1000] float32".into(),
        length: 400,
        before: Some(100),
        bytes: 120 * MIB,
        own_bytes: 120 * MIB,
        more_bytes: 90 * MIB,
        of_bytes: 100 * MIB,
        ..Retainer::default()
    }
}

fn census(retainers: &[Retainer]) -> Option<Census> {
    Some(Census { number: 2, grown: 150 * MIB, retainers: retainers.to_vec(), ..Census::default() })
}

fn one(verdict: &Verdict) -> (&str, Severity, Status, String) {
    let named = named(verdict);
    assert_eq!(named.len(), 1, "{:?}", verdict.findings);
    let finding = named[0];
    (finding.cause.as_str(), finding.severity, finding.status(), sentences(finding))
}

#[test]
fn what_a_parser_reads_is_cleared_at_its_root() {
    let tree = Retainer { type_name: "xml.etree.ElementTree.Element".into(), ..retainer("self._parser") };
    let verdict = run(steady, census(&[tree]));
    let [fix] = &verdict.findings[0].fixes[..] else { panic!("{:?}", verdict.findings[0].fixes) };
    assert!(fix.command.contains("root.clear()") && !fix.command.contains("_parser"), "{}", fix.command);
}

#[test]
fn lists_within_a_dict_that_become_longer_are_shortened() {
    let of = |element: &str| {
        let (type_name, element) = ("dict".to_owned(), element.to_owned());
        let scalars = Retainer { type_name, element, nested: true, ..retainer("writer.scalars") };
        let verdict = run(steady, census(&[scalars]));
        let (cause, _, _, said) = one(&verdict);
        assert!(said.contains("from 100 to 400 elements of its elements"), "{said}");
        (cause.to_owned(), verdict.findings[0].fixes[0].command.clone())
    };
    let shortened = "for one in writer.scalars.values(): one.clear()";
    let (cause, command) = of("list");
    assert_eq!(cause, "accumulate-metrics-outputs", "figures are appended under each key");
    assert!(command.starts_with(shortened), "{command}");
    assert_eq!(of("set"), ("unbounded-caches".into(), shortened.into()));
    let named = |name: &str| {
        let (type_name, element) = ("dict".to_owned(), "list".to_owned());
        let lists = Retainer { type_name, element, nested: true, ..retainer(name) };
        one(&run(steady, census(&[lists]))).0.to_owned()
    };
    assert_eq!(named("step, closure variable stats of step()"), "accumulate-metrics-outputs");
    assert_eq!(named("self.cache"), "unbounded-caches");
    let outputs = |nested| {
        let (type_name, element) = ("dict".to_owned(), "list with Tensor [2048, 512] float32".to_owned());
        let verdict = run(steady, census(&[Retainer { type_name, element, nested, ..retainer("by_name") }]));
        let finding = &verdict.findings[0];
        (finding.cause.clone(), finding.fixes[0].command.clone())
    };
    let (cause, command) = outputs(true);
    assert_eq!(cause, "accumulate-metrics-outputs", "tensors are appended under each key");
    assert!(command.starts_with("for one in by_name.values(): one.clear()"), "{command}");
    assert_eq!(outputs(false).0, "unbounded-caches", "ever more keys");
}

#[test]
fn a_list_of_outputs_is_named_with_its_line_and_its_share() {
    let verdict = run(steady, census(&[retainer("outputs")]));
    let (cause, severity, status, said) = one(&verdict);
    assert_eq!(cause, "accumulate-metrics-outputs");
    assert_eq!((severity, status), (Severity::Warning, Status::Established));
    assert!(said.contains("The list `outputs` in train() grew by 90 MiB at train.py:27,"), "{said}");
    assert!(said.contains("Its elements: Tensor [128, 1000] float32."), "{said}");
    assert!(said.contains("explains 90 MiB of 100 MiB") && said.contains("90 %"), "{said}");
    assert!(verdict.findings[0].fixes[0].command.starts_with("outputs.clear()"));
    assert!(!verdict.healthy);
}

#[test]
fn finalizers_of_a_library_are_a_note_where_they_hold_little_and_what_a_hook_lists_is_not() {
    let with = |element: &str, more: fn(f64) -> u64| {
        let retainer = Retainer { by_hook: true, element: element.into(), ..retainer("kept") };
        let verdict = run(more, census(&[retainer]));
        let finding = verdict.findings.iter().find(|finding| finding.cause == "hooks-and-closures-leak");
        finding.expect("it is found").severity
    };
    let little = |second: f64| (2.0 * second) as u64;
    assert_eq!(with("weakref.finalize._Info", little), Severity::Note);
    assert_eq!(with("weakref.finalize._Info", steady), Severity::Warning);
    assert_eq!(with("Tensor [128, 1000] float32", little), Severity::Warning);
}

#[test]
fn each_way_to_hold_has_its_rule() {
    let with = |change: fn(&mut Retainer)| {
        let mut retainer = retainer("kept");
        change(&mut retainer);
        let verdict = run(steady, census(&[retainer]));
        one(&verdict).0.to_owned()
    };
    let graph = with(|one| {
        (one.graph, one.more_bytes, one.hidden_bytes) = (1.0, 100, 80 * MIB);
    });
    assert_eq!(graph, "accumulate-tensors-with-graph");
    assert_eq!(with(|one| (one.views, one.own_bytes) = (1.0, MIB)), "view-retains-base");
    assert_eq!(with(|one| one.errors = 1.0), "exception-traceback-holds-frames");
    assert_eq!(with(|one| one.type_name = "itertools.cycle".into()), "itertools-cycle-caches");
    assert_eq!(with(|one| one.type_name = "lru_cache".into()), "unbounded-caches");
    assert_eq!(with(|one| one.type_name = "dict".into()), "unbounded-caches");
    let of_threads = with(|one| (one.name, one.type_name) = ("threading._active".into(), "dict".into()));
    assert_eq!(of_threads, "threads-per-task");
    let of_a_class = with(|one| (one.place, one.element) = (String::new(), "str".into()));
    assert_eq!(of_a_class, "unbounded-caches");
    let memo =
        with(|one| (one.name, one.type_name) = ("f, closure variable seen of g()".into(), "dict".into()));
    assert_eq!(memo, "unbounded-caches");
    assert_eq!(with(|one| one.name = "dataset.cache".into()), "unbounded-caches");
    let finalizers = with(|one| {
        (one.name, one.type_name) = ("weakref.finalize._registry".into(), "dict".into());
        one.element = "weakref.finalize._Info with ndarray [512] float64".into();
    });
    assert_eq!(finalizers, "hooks-and-closures-leak");
    let timers = with(|one| {
        one.owner = "asyncio.unix_events._UnixSelectorEventLoop".into();
        (one.name, one.taken_from) = ("self._scheduled".into(), true);
        one.element = "asyncio.events.TimerHandle".into();
    });
    assert_eq!(timers, "hooks-and-closures-leak");
    let behind_timers = with(|one| {
        one.owner = "asyncio.unix_events._UnixSelectorEventLoop".into();
        (one.name, one.deep, one.element) = ("reader._loop._scheduled".into(), true, String::new());
    });
    assert_eq!(behind_timers, "hooks-and-closures-leak");
    let of_many = with(|one| {
        (one.name, one.owner) = ("orm.connections.local[...].queries".into(), "orm.Database".into());
        (one.place, one.element, one.alike) = (String::new(), "dict".into(), 10);
    });
    assert_eq!(of_many, "accumulate-metrics-outputs");
    let behind_a_future = with(|one| {
        (one.name, one.deep, one.element) = ("self.error_future".into(), true, String::new());
        one.owner = "_asyncio.Future".into();
    });
    assert_eq!(behind_a_future, "hooks-and-closures-leak");
    let of_a_future = with(|one| {
        (one.name, one.owner) = ("self.error_future._callbacks".into(), "asyncio.futures.Future".into());
        one.element = "tuple".into();
    });
    assert_eq!(of_a_future, "hooks-and-closures-leak");
    let of_a_manager = with(|one| {
        one.owner = "multiprocessing.managers.Server".into();
        (one.name, one.type_name, one.element) = ("self.id_to_obj".into(), "dict".into(), "tuple".into());
    });
    assert_eq!(of_a_manager, "unbounded-caches");
    let of_a_process = with(|one| {
        one.owner = "multiprocessing.context.ForkProcess".into();
        (one.name, one.deep) = ("process._args[3].dataset".into(), true);
    });
    assert_eq!(of_a_process, "accumulate-metrics-outputs");
    let traced = with(|one| {
        (one.type_name, one.name, one.element) = ("tracebacks".into(), String::new(), String::new());
        one.errors = 1.0;
    });
    assert_eq!(traced, "exception-traceback-holds-frames");
    let of_all = with(|one| (one.name, one.owner) = ("__main__.A.kept".into(), "__main__.A".into()));
    assert_eq!(of_all, "unbounded-caches");
    assert_eq!(with(|one| (one.graph, one.by_hook) = (1.0, true)), "hooks-and-closures-leak");
    let hooks = with(|one| (one.name, one.more_bytes) = ("net._forward_hooks".into(), 100));
    assert_eq!(hooks, "hooks-and-closures-leak");
}

#[test]
fn timers_that_wait_are_a_warning_only_where_they_are_much() {
    let timers = Retainer {
        owner: "asyncio.unix_events._UnixSelectorEventLoop".into(),
        element: "asyncio.events.TimerHandle".into(),
        more_bytes: 50 * MIB,
        of_bytes: 60 * MIB,
        ..retainer("self._scheduled")
    };
    let of = |more: fn(f64) -> u64| {
        let verdict = run(more, census(std::slice::from_ref(&timers)));
        let found = verdict.findings.iter().find(|one| one.cause == "hooks-and-closures-leak");
        found.map(|finding| finding.severity)
    };
    assert_eq!(of(|t| (1.5 * t) as u64), Some(Severity::Note), "a loop that is busy");
    assert_eq!(of(steady), Some(Severity::Warning));
}

#[test]
fn an_exception_that_is_raised_again_has_tracebacks() {
    let cached = Retainer {
        type_name: "app.Failed".into(),
        element: String::new(),
        errors: 1.0,
        ..retainer("cached_errors['address']")
    };
    let verdict = run(steady, census(&[cached]));
    let (cause, severity, _, said) = one(&verdict);
    assert_eq!((cause, severity), ("exception-traceback-holds-frames", Severity::Warning));
    assert!(said.contains("from 100 to 400 tracebacks") && said.contains("Each time it is raised"), "{said}");
    let remedy = &verdict.findings[0].fixes[0].command;
    assert_eq!(remedy, "raise cached_errors['address'].with_traceback(None)");
}

#[test]
fn what_waits_in_a_queue_or_for_an_executor_is_a_backlog() {
    let owner = "concurrent.futures.process.ProcessPoolExecutor".to_owned();
    let name = "self.executor._pending_work_items";
    for (owner, name, remedy) in
        [("queue.Queue".into(), "q.queue", "maxsize=16"), (owner, name, "self.executor.submit(")]
    {
        let verdict = run(steady, census(&[Retainer { owner, ..retainer(name) }]));
        assert_eq!((one(&verdict).0, one(&verdict).1), ("queue-backlog-unbounded", Severity::Warning));
        assert!(verdict.findings[0].fixes[0].command.contains(remedy), "{:?}", verdict.findings[0].fixes);
    }
}

#[test]
fn tasks_that_are_not_done_are_a_backlog_and_those_that_are_done_are_output() {
    for (element, cause, remedy) in [
        ("_asyncio.Task (pending)", "queue-backlog-unbounded", "asyncio.create_task("),
        ("concurrent.futures._base.Future (pending)", "queue-backlog-unbounded", "executor.submit("),
        ("_asyncio.Task", "accumulate-metrics-outputs", "clear()"),
    ] {
        let retained =
            Retainer { element: element.into(), place: "main(), job.py:7".into(), ..retainer("pending") };
        let verdict = run(steady, census(&[retained]));
        assert_eq!((one(&verdict).0, one(&verdict).1), (cause, Severity::Warning));
        let fixes = &verdict.findings[0].fixes;
        assert!(fixes.iter().any(|fix| fix.command.contains(remedy)), "{fixes:?}");
    }
}

#[test]
fn a_dict_by_the_number_of_a_step_is_what_each_step_brought() {
    let replies = |name: &str, numbered| Retainer {
        numbered,
        type_name: "dict".into(),
        element: "dict with ndarray [1180, 1180] float32".into(),
        place: "main(), researcher.py:30".into(),
        ..retainer(name)
    };
    let cause = |held: Retainer| one(&run(steady, census(&[held]))).0.to_string();
    assert_eq!(cause(replies("experiment.replies", true)), "accumulate-metrics-outputs");
    assert_eq!(cause(replies("experiment.replies", false)), "unbounded-caches");
    assert_eq!(cause(replies("dataset.cache", true)), "unbounded-caches");
}

#[test]
fn what_is_taken_from_at_the_front_is_a_backlog() {
    let held = |type_name: &str, drained| Retainer {
        drained,
        type_name: type_name.into(),
        element: "bytes".into(),
        place: "main(), job.py:7".into(),
        ..retainer("self.queue")
    };
    let verdict = run(steady, census(&[held("collections.deque", true)]));
    assert_eq!((one(&verdict).0, one(&verdict).1), ("queue-backlog-unbounded", Severity::Warning));
    let fix = &verdict.findings[0].fixes[0];
    assert!(fix.command.contains("room.acquire()") && fix.command.contains("self.queue"), "{fix:?}");
    assert!(!causes(&run(steady, census(&[held("collections.deque", false)])))
        .contains(&"queue-backlog-unbounded"));
    let refused = Retainer { taken_from: true, ..held("collections.deque", false) };
    assert_eq!(causes(&run(steady, census(&[refused]))), ["queue-backlog-unbounded"]);
    let out_of_order = Retainer { taken_from: true, ..held("dict", false) };
    let verdict = run(steady, census(std::slice::from_ref(&out_of_order)));
    assert_eq!(one(&verdict).0, "queue-backlog-unbounded");
    assert!(one(&verdict).3.contains("takes elements by their keys"), "{}", one(&verdict).3);
    let in_turn = Retainer { in_order: true, ..out_of_order.clone() };
    let verdict = run(steady, census(std::slice::from_ref(&in_turn)));
    assert_eq!((one(&verdict).0, one(&verdict).1), ("out-of-order-reorder-buffer", Severity::Warning));
    assert!(one(&verdict).3.contains("an early one waits for one that is late"), "{}", one(&verdict).3);
    let command = &verdict.findings[0].fixes[0].command;
    assert!(command.contains("room.acquire()") && command.contains("taken from self.queue"), "{command}");
    let listeners = Retainer { element: "function".into(), ..out_of_order.clone() };
    assert_eq!(causes(&run(steady, census(&[listeners]))), ["hooks-and-closures-leak"]);
    let by_name = Retainer { element: "list".into(), nested: true, ..out_of_order.clone() };
    assert_eq!(causes(&run(steady, census(&[by_name]))), ["accumulate-metrics-outputs"]);
    let newest_first = Retainer { name: "self.cache".into(), ..out_of_order };
    assert_eq!(causes(&run(steady, census(&[newest_first]))), ["unbounded-caches"]);
    let pending =
        Retainer { element: "_asyncio.Task (pending) with Tensor [3] float32".into(), ..held("set", false) };
    assert_eq!(causes(&run(steady, census(&[pending]))), ["queue-backlog-unbounded"]);
}

#[test]
fn what_a_constructor_fills_is_the_object_itself_until_it_has_returned() {
    let filled = |in_constructor| Retainer {
        in_constructor,
        type_name: "list".into(),
        element: "tuple with ndarray [192, 320, 3] float32".into(),
        place: "__init__(), sceneflow.py:29".into(),
        owner: "sceneflow.SceneFlow".into(),
        ..retainer("self.pairs")
    };
    let of = |retainers: Vec<Retainer>, exception: Option<&str>| {
        let number = if retainers[0].before.is_some() { 2 } else { 1 };
        let census = Census { number, retainers, grown: 100 * MIB, ..Census::default() };
        let first = Census { number: 1, grown: 5 * MIB, ..Census::default() };
        let mut said = vec![(39, AgentMessage::Census(Box::new(census)))];
        if number == 2 {
            said.insert(0, (10, AgentMessage::Census(Box::new(first))));
        }
        said.extend(
            exception.map(|name| (40, AgentMessage::Exception(Box::new(raised(name, "no such group"))))),
        );
        let verdict = verdict_of(steady, said);
        (verdict.findings[0].cause.clone(), verdict.findings[0].severity, sentences(&verdict.findings[0]))
    };
    let found = of(vec![filled(true)], Some("ValueError"));
    assert_eq!((found.0.as_str(), found.1), ("accumulate-metrics-outputs", Severity::Note));
    assert!(found.2.contains("had not returned yet"), "{}", found.2);
    // It was empty before, so that one look is enough.
    let at_once = Retainer { before: None, ..filled(true) };
    assert_eq!(of(vec![at_once], Some("ValueError")).1, Severity::Note);
    let outputs = retainer("losses");
    for (retainers, exception, what) in [
        (vec![filled(true)], None, "a program that is all constructor"),
        (vec![filled(true)], Some("KeyboardInterrupt"), "somebody had seen enough of it"),
        (vec![filled(false)], Some("ValueError"), "it had returned"),
        (vec![filled(true), outputs], Some("ValueError"), "and something else grows too"),
    ] {
        assert_eq!(of(retainers, exception).1, Severity::Warning, "{what}");
    }
}

#[test]
fn functions_and_what_they_close_over_are_hooks_by_whatever_they_are_listed() {
    for element in ["function with Tensor [3] float32", "method", "functools.partial"] {
        let held = Retainer { element: element.into(), type_name: "dict".into(), ..retainer("callbacks") };
        let verdict = run(steady, census(&[held]));
        assert_eq!(causes(&verdict), ["hooks-and-closures-leak"], "{element}");
        assert_eq!(verdict.findings[0].fixes[0].command, "callbacks.pop(key)");
    }
    let results =
        Retainer { element: "functional.Result".into(), type_name: "dict".into(), ..retainer("results") };
    assert_eq!(causes(&run(steady, census(&[results]))), ["unbounded-caches"]);
}

#[test]
fn what_native_code_holds_comes_with_what_takes_it_back() {
    for (name, element, said, command) in [
        (
            "(State, Logger)",
            "",
            "arguments `(State, Logger)` of callbacks lead to grew by",
            "atexit.unregister",
        ),
        ("close()", "callback", "What the callbacks `close()` lead to grew by", "atexit.unregister"),
        ("clear()", "hook", "What the callbacks `clear()` lead to grew by", "handle.remove()"),
    ] {
        let held = Retainer {
            element: element.into(),
            type_name: "callbacks".into(),
            deep: true,
            by_hook: true,
            place: String::new(),
            ..retainer(name)
        };
        let verdict = run(steady, census(&[held]));
        assert_eq!(causes(&verdict), ["hooks-and-closures-leak"], "{name}");
        let text = sentences(&verdict.findings[0]);
        assert!(text.contains(said) && text.contains("registrations"), "{text}");
        assert!(
            text.contains("nothing in Python refers to them") && !text.contains("its elements"),
            "{text}"
        );
        let fix = &verdict.findings[0].fixes[0];
        assert!(fix.command.contains(command), "{fix:?}");
    }
}

#[test]
fn what_hangs_below_a_name_is_counted_in_objects() {
    let deep = Retainer {
        deep: true,
        type_name: "dict".into(),
        owner: "__main__.Tree".into(),
        place: "main(), job.py:7".into(),
        element: String::new(),
        ..retainer("tree.root")
    };
    let said = one(&run(steady, census(std::slice::from_ref(&deep)))).3.to_owned();
    assert!(
        said.contains("What the dict `tree.root` in main()") && said.contains(" leads to grew by "),
        "{said}"
    );
    assert!(said.contains(" objects."), "{said}");
    let queue =
        Retainer { type_name: "multiprocessing.queues.Queue".into(), owner: String::new(), ..deep.clone() };
    assert_eq!(causes(&run(steady, census(&[queue]))), ["queue-backlog-unbounded"]);
    let derived = Retainer { owner: "train.History(logging.Handler)".into(), ..deep };
    assert_eq!(causes(&run(steady, census(&[derived])))[0], "logging-and-experiment-trackers");
}

#[test]
fn graphs_that_a_backward_pass_has_freed_hold_nothing() {
    let retained = Retainer { graph: 1.0, more_bytes: 100, ..retainer("losses") };
    let seen = Census { sees_saved: true, ..census(std::slice::from_ref(&retained)).unwrap() };
    assert_eq!(causes(&run(steady, Some(seen))), ["unnamed-growth"]);
    // Where torch does not tell, it may be so.
    let unseen = run(steady, census(&[retained]));
    let (cause, severity, status, _) = one(&unseen);
    assert_eq!(
        (cause, severity, status),
        ("accumulate-tensors-with-graph", Severity::Note, Status::Hypothesis)
    );
}

#[test]
fn a_graph_that_reaches_ever_further_back_is_found_without_a_container() {
    let graph = HeldGraph {
        name: "total".into(),
        place: "train(), train.py:31".into(),
        line: "train.py:28".into(),
        operations: 2000,
        before: 500,
        more_bytes: 70 * MIB,
        of_bytes: 100 * MIB,
        ..HeldGraph::default()
    };
    let with =
        |graph: HeldGraph| run(steady, Some(Census { number: 2, graphs: vec![graph], ..Census::default() }));
    let verdict = with(graph.clone());
    let (cause, severity, status, said) = one(&verdict);
    assert_eq!((cause, severity), ("accumulate-tensors-with-graph", Severity::Warning));
    assert_eq!(status, Status::Established);
    assert!(
        said.contains("The Tensor `total` in train() (train.py:31)") && said.contains("2,000 operations"),
        "{said}"
    );
    // Where torch does not tell what was saved, what no other holder explains is what it explains at most.
    let unseen = with(HeldGraph { more_bytes: 0, ..graph });
    assert_eq!((one(&unseen).1, one(&unseen).2), (Severity::Note, Status::Hypothesis));
    assert!(one(&unseen).3.contains("at most"));
}

#[test]
fn what_comes_to_rest_is_nobodys_leak() {
    let rests = |t: f64| (20.0 * t.min(22.0)) as u64;
    assert_eq!(run(rests, census(&[retainer("buffer")])).findings, []);
    assert_eq!(run(|_| 100, census(&[retainer("buffer")])).findings, []);
}

#[test]
fn what_explains_little_is_not_reported_and_what_is_small_or_bounded_is_a_note() {
    let little = Retainer { more_bytes: 20 * MIB, ..retainer("outputs") };
    assert_eq!(causes(&run(steady, census(&[little]))), ["unnamed-growth"]);
    let small = run(|t| (1.2 * t) as u64, census(&[retainer("outputs")]));
    assert_eq!(one(&small).1, Severity::Note);
    assert!(small.healthy);
    let bounded = Retainer { bounded: true, ..retainer("recent") };
    assert_eq!(one(&run(steady, census(std::slice::from_ref(&bounded)))).1, Severity::Note);
    let of_errors = Retainer { errors: 1.0, type_name: "lru_cache".into(), ..bounded };
    let verdict = run(steady, census(&[of_errors]));
    let (cause, severity, ..) = one(&verdict);
    assert_eq!((cause, severity), ("exception-traceback-holds-frames", Severity::Warning));
}

#[test]
fn one_census_names_nobody_and_without_the_agent_it_cannot_be_determined() {
    let first = Census {
        number: 1,
        retainers: vec![Retainer { before: None, ..retainer("kept") }],
        ..Census::default()
    };
    let verdict = run(steady, Some(first));
    assert_eq!(causes(&verdict), ["unnamed-growth"]);
    assert!(undetermined(&verdict).contains(&"accumulate-metrics-outputs"), "{:?}", verdict.undetermined);

    let mut alone = Run::new();
    for second in 0..40 {
        let mut reading = reading(MAIN, 1, "python");
        reading.memory = Measured::Known(ProcessMemory {
            anonymous: Bytes((200 + 10 * second) * MIB),
            ..ProcessMemory::default()
        });
        alone.tick(1.0 + second as f64, vec![reading], |_| {});
    }
    let verdict = alone.finish(41.5, Ending::Exited(0)).verdict();
    assert_eq!(causes(&verdict), ["unnamed-growth"]);
    let because = &verdict.undetermined.iter().find(|one| one.cause == "unbounded-caches").unwrap().because;
    assert!(because.contains("no agent was inside"), "{because}");
}

#[test]
fn what_lies_inside_another_retainer_counts_once() {
    let outer = Retainer { more_bytes: 60 * MIB, ..retainer("model.outputs") };
    let inner = Retainer { more_bytes: 60 * MIB, ..retainer("model.outputs['logits']") };
    let verdict = run(steady, census(&[outer, inner]));
    assert!(one(&verdict).3.contains("explains 60 MiB of 100 MiB"), "{}", one(&verdict).3);
}

#[test]
fn garbage_that_nobody_collects_is_named_and_a_little_of_it_is_not() {
    let with = |bytes: u64, collects: bool, old: bool| {
        let garbage = Garbage { objects: 8000, inspected: 4000, garbage: 3900, bytes, old };
        let census = Census {
            number: 1,
            grown: 150 * MIB,
            collects,
            collects_after: 100_000,
            garbage: Some(garbage),
            ..Census::default()
        };
        run(steady, Some(Census { number: 2, ..census }))
    };
    let verdict = with(120 * MIB, false, false);
    let (cause, severity, status, said) = one(&verdict);
    assert_eq!(
        (cause, severity, status),
        ("gc-disabled-or-deferred", Severity::Warning, Status::Established)
    );
    assert!(said.contains("is off; 8,000 objects came"), "{said}");
    assert!(said.contains("retains 120 MiB of 150 MiB that came (80 %)"), "{said}");
    assert!(one(&with(120 * MIB, true, false)).3.contains("waits for 100,000 new objects"));
    assert!(one(&with(120 * MIB, true, true))
        .3
        .contains("a quarter more objects have lived that long; 8,000 objects were"));
    assert_eq!(causes(&with(20 * MIB, false, false)), ["unnamed-growth"]);
}

#[test]
fn garbage_that_waits_for_a_collector_at_work_and_comes_to_rest_is_a_note() {
    let with = |collects: bool, more: fn(f64) -> u64| {
        let garbage = Garbage { objects: 679, inspected: 676, garbage: 655, bytes: 140 * MIB, old: false };
        let first =
            Census { number: 2, grown: 150 * MIB, collects, collects_after: 700, ..Census::default() };
        let verdict = run(more, Some(Census { garbage: Some(garbage), ..first }));
        let finding = verdict.findings.iter().find(|finding| finding.cause == "gc-disabled-or-deferred");
        finding.map(|finding| finding.severity)
    };
    // Fast as long as ever more objects wait, and ever slower.
    let bounded = |second: f64| (600.0 * (1.0 - (-second / 22.0).exp())) as u64;
    assert_eq!(with(true, bounded), Some(Severity::Note));
    assert_eq!(with(true, steady), Some(Severity::Warning));
    assert_eq!(
        with(false, bounded),
        Some(Severity::Warning),
        "it is off: a phase that makes less is no rest"
    );
}

#[test]
fn a_census_from_before_the_rise_counts_where_it_was_rising_then_too() {
    let of = |knee: f64, early: fn(f64) -> f64| {
        let more =
            move |t: f64| if t < knee { early(t) as u64 } else { (early(knee) + 10.0 * (t - knee)) as u64 };
        let census =
            Census { number: 2, grown: 150 * MIB, retainers: vec![retainer("states")], ..Census::default() };
        let first = Census { number: 1, ..Census::default() };
        verdict_of(
            more,
            [(2, first), (8, census)].map(|(at, one)| (at, AgentMessage::Census(Box::new(one)))).into(),
        )
    };
    let faster = of(14.0, |t| 20.0 * t);
    let (cause, severity, status, _) = one(&faster);
    assert_eq!((cause, severity), ("accumulate-metrics-outputs", Severity::Warning));
    assert_eq!(status, Status::Supported, "what came since was not seen");
    assert_eq!(causes(&of(12.0, |t| 40.0 * t)), ["unnamed-growth"], "so fast it is what was loaded");
    // It rested in between: what came later may be something else.
    assert_eq!(causes(&of(22.0, |t| if t < 8.0 { 20.0 * t } else { 160.0 })), ["unnamed-growth"]);
}

#[test]
fn garbage_that_is_older_than_the_growth_is_no_reason_for_it() {
    let with = |bytes: &[u64]| {
        let census = |(place, bytes): (usize, &u64)| {
            let bytes = bytes * MIB;
            let garbage = Garbage { objects: 8000, inspected: 8000, garbage: 3900, bytes, old: true };
            let grown = 75 * (place as u64 + 1) * MIB;
            Census { grown, collects: true, garbage: Some(garbage), ..Census::default() }
        };
        verdict_of(steady, in_turn(&bytes.iter().enumerate().map(census).collect::<Vec<_>>()))
    };
    let came = with(&[20, 90]);
    let (cause, severity, status, said) = one(&came);
    assert_eq!(
        (cause, severity, status),
        ("gc-disabled-or-deferred", Severity::Warning, Status::Established)
    );
    assert!(said.contains("retains 70 MiB of 75 MiB that came (93 %)"), "{said}");
    assert_eq!(causes(&with(&[300, 300])), ["unnamed-growth"]);
    assert_eq!(one(&with(&[60])).2, Status::Supported, "it may have been there before");
    assert_eq!(one(&with(&[10, 140, 20, 260])).2, Status::Supported, "it comes and goes");
}

#[test]
fn garbage_that_is_out_of_sight_by_now_was_there_before_and_is_not_what_came() {
    let with = |objects: [u64; 2], garbage: [u64; 2], bytes: [u64; 2]| {
        let census = |place: usize| {
            let (objects, garbage, bytes) = (objects[place], garbage[place], bytes[place] * MIB);
            let garbage = Garbage { objects: 8000, inspected: 8000, garbage, bytes, old: true };
            let grown = 75 * (place as u64 + 1) * MIB;
            Census {
                grown,
                objects: Some(objects),
                collects: true,
                garbage: Some(garbage),
                ..Census::default()
            }
        };
        verdict_of(steady, in_turn(&[census(0), census(1)]))
    };
    // As many objects came as are inspected: all garbage among them came with them.
    let all = with([10_000, 18_000], [4400, 4800], [60, 64]);
    assert_eq!(one(&all).2, Status::Supported, "what slid out of sight may have been collected");
    assert!(one(&all).3.contains("retains 64 MiB of 75 MiB that came"), "{}", one(&all).3);
    // Half as many: half of what was counted before is still among them.
    let half = with([10_000, 14_000], [4400, 4800], [60, 64]);
    assert!(one(&half).3.contains("retains 34 MiB of 75 MiB that came"), "{}", one(&half).3);
    for (objects, garbage) in [
        ([10_000, 10_000], [4400, 4800]), // none came: it is what was counted before
        ([10_000, 26_000], [4400, 4800]), // most of what came is not inspected
        ([10_000, 14_000], [3900, 3900]), // ever as much garbage, which comes and goes with each step
    ] {
        assert_eq!(causes(&with(objects, garbage, [60, 64])), ["unnamed-growth"], "{objects:?} {garbage:?}");
    }
}

#[test]
fn garbage_that_was_collected_after_the_census_retains_nothing() {
    let last = |collects: bool, used: f64, free: f64| {
        let garbage = Garbage { objects: 8000, inspected: 4000, garbage: 3900, bytes: 120 * MIB, old: false };
        let census =
            Census { number: 2, grown: 150 * MIB, collects, garbage: Some(garbage), ..Census::default() };
        let figures = |anonymous: f64, used: f64, free: f64| {
            let figures = [("anonymous", anonymous), ("malloc_used", used), ("malloc_free", free)];
            AgentMessage::Memory {
                figures: figures.map(|(name, mib)| (name.to_owned(), mib * MIB as f64)).into(),
            }
        };
        let said = vec![
            (1, figures(210.0, 40.0, 2.0)),
            (20, AgentMessage::Census(Box::new(census))),
            (39, figures(590.0, used, free)),
        ];
        verdict_of(steady, said)
    };
    assert_eq!(causes(&last(true, 400.0, 22.0)), ["gc-disabled-or-deferred"]);
    assert!(!causes(&last(true, 60.0, 362.0)).contains(&"gc-disabled-or-deferred"));
    assert_eq!(causes(&last(false, 60.0, 362.0))[0], "gc-disabled-or-deferred", "collected where it ended");
}

#[test]
fn objects_that_are_frozen_again_and_again_are_named_and_those_frozen_once_are_not() {
    let with = |frozen: [u64; 2], retainers: &[Retainer]| {
        let message = |number: u32| {
            let frozen = Some(frozen[number as usize - 1]);
            let retainers = if number == 2 { retainers.to_vec() } else { Vec::new() };
            let census = Census {
                number,
                grown: 75 * u64::from(number) * MIB,
                frozen,
                retainers,
                ..Census::default()
            };
            AgentMessage::Census(Box::new(census))
        };
        verdict_of(steady, vec![(10, message(1)), (20, message(2))])
    };
    let verdict = with([4_000, 12_000], &[]);
    let (cause, severity, status, said) = one(&verdict);
    assert_eq!((cause, severity, status), ("gc-disabled-or-deferred", Severity::Warning, Status::Supported));
    assert!(said.contains("12,000 objects are frozen, up from 4,000"), "{said}");
    assert_eq!(causes(&with([4_000, 4_000], &[])), ["unnamed-growth"]);
    assert_eq!(one(&with([4_000, 12_000], &[retainer("losses")])).0, "accumulate-metrics-outputs");
}

#[test]
fn garbage_that_is_circles_of_one_function_stands_behind_it() {
    let verdict = |circles: u64| {
        let garbage = Garbage { objects: 400, inspected: 400, garbage: 320, bytes: 120 * MIB, old: false };
        let census = Census { number: 1, grown: 150 * MIB, garbage: Some(garbage), ..Census::default() };
        let counted = |second: i32| {
            let count = circles * second as u64 / 40;
            let name = "Double".into();
            TorchCount { what: "autograd-circles".into(), count, bytes: Some(count * MIB), name }
        };
        let mut said = in_turn(&[census.clone(), census]);
        said.extend((1..=40).map(|second| (second, AgentMessage::TorchCount(counted(second)))));
        verdict_of(steady, said)
    };
    let order = ["autograd-function-ctx-leak", "gc-disabled-or-deferred"];
    assert_eq!(causes(&verdict(130)), order);
    let other = verdict(50);
    assert_eq!(causes(&other)[0], "gc-disabled-or-deferred", "50 of 120 MiB: {:?}", other.findings);
}

#[test]
fn a_retainer_that_weighs_more_than_its_process_is_left_out() {
    let lies = Retainer { bytes: 1 << 50, more_bytes: 1 << 50, ..retainer("buckets") };
    assert_eq!(causes(&run(steady, census(std::slice::from_ref(&lies)))), ["unnamed-growth"]);
    let verdict = run(steady, census(&[lies, retainer("outputs")]));
    let said = sentences(named(&verdict)[0]);
    assert!(
        said.contains("The list `outputs`") && !said.contains("buckets") && said.contains("90 %"),
        "{said}"
    );
}
