//! gloo-and-process-group-growth, autograd-function-ctx-leak, torch-compile-recompiles, torch-known-bad-versions,
//! out-of-order-reorder-buffer, streaming-shuffle-buffer and object-collectives-pickle: what the agent tells of torch's own keeping.

use super::build::*;
use ullage_model::{
    AgentMessage, Bytes, Collective, Ending, EventKind, Fact, KernelOomKill, Measured, OomConstraint,
    ProcessReading, Role, Severity, Status, TorchCount, Verdict, Waiting, Weight,
};

fn says(run: &mut Run, at: f64, message: AgentMessage) {
    run.event(at, EventKind::Agent { id: Some(id(TRAINER)), pid: TRAINER, message });
}

fn torch_count(what: &str, count: u64, bytes: u64) -> AgentMessage {
    AgentMessage::TorchCount(TorchCount {
        what: what.into(),
        count,
        bytes: Some(bytes),
        name: "Double".into(),
    })
}

fn grown(anonymous: u64, threads: u32) -> ProcessReading {
    let mut trainer = reading(TRAINER, MAIN, "python");
    trainer.threads = threads;
    if let Measured::Known(memory) = &mut trainer.memory {
        memory.anonymous = Bytes(anonymous);
    }
    trainer
}

/// Twenty seconds in which a count, memory and threads follow these.
fn counted(
    what: &str,
    count: impl Fn(u64) -> u64,
    bytes: impl Fn(u64) -> u64,
    memory: impl Fn(u64) -> u64,
    threads: impl Fn(u64) -> u32,
) -> Run {
    let mut run = Run::with_trainer();
    let mut before = 0;
    for second in 1..=20u64 {
        if count(second) > before {
            before = count(second);
            says(&mut run, second as f64, torch_count(what, before, bytes(second)));
        }
        run.tick(
            second as f64 + 0.1,
            vec![reading(MAIN, 1, "python"), grown(memory(second), threads(second))],
            |_| {},
        );
    }
    run.ended(20.5, TRAINER, Ending::Exited(0)).finish(20.6, Ending::Exited(0));
    run
}

#[test]
fn groups_that_become_more_to_the_end_are_reported_and_not_their_threads() {
    let groups = |count: fn(u64) -> u64| {
        counted(
            "process-groups",
            count,
            |_| 0,
            |second| 200 * MIB + second * MIB,
            |second| 4 + 9 * second as u32,
        )
        .verdict()
    };
    let verdict = groups(|second| 1 + 3 * second);
    assert_eq!(causes(&verdict), ["gloo-and-process-group-growth"]);
    assert!(sentences(&verdict.findings[0]).contains("had 61 process groups, 57 more than"));
    for healthy in [|_: u64| 2, |second: u64| 40.min(1 + 20 * second), |second: u64| 1 + second / 4] {
        assert!(!causes(&groups(healthy)).contains(&"gloo-and-process-group-growth"));
    }
}

#[test]
fn threads_that_are_not_those_of_groups_stay_threads() {
    let run = counted("process-groups", |_| 2, |_| 0, |_| 200 * MIB, |second| 4 + 20 * second as u32);
    assert_eq!(causes(&run.verdict()), ["threads-per-task"]);
}

#[test]
fn contexts_that_hold_themselves_are_reported_from_their_bytes_on() {
    let contexts = |each: u64| {
        counted(
            "autograd-circles",
            |second| 20 * second,
            move |second| 20 * second * each,
            move |second| 200 * MIB + 20 * second * each,
            |_| 4,
        )
        .verdict()
    };
    let verdict = contexts(MIB);
    let found = &verdict.findings[0];
    assert_eq!((found.cause.as_str(), found.severity), ("autograd-function-ctx-leak", Severity::Warning));
    assert_eq!(found.status(), Status::Established);
    assert!(sentences(found).contains("had 400 tensors"), "{}", sentences(found));
    assert_eq!(contexts(50 << 10).findings[0].severity, Severity::Note);
    assert!(contexts(100).findings.is_empty());
}

fn compiled(graphs: fn(u64) -> u64, memory: fn(u64) -> u64) -> Verdict {
    counted("compiled-graphs", graphs, |_| 0, move |second| 200 * MIB + memory(second) * MIB, |_| 4).verdict()
}

#[test]
fn graphs_and_memory_that_rise_together_are_reported() {
    let severity = |verdict: &Verdict| {
        let found = verdict.findings.iter().find(|finding| finding.cause == "torch-compile-recompiles");
        found.map(|finding| finding.severity)
    };
    assert_eq!(severity(&compiled(|second| 2 * second, |second| 5 * second)), Some(Severity::Note));
    assert_eq!(severity(&compiled(|second| 4 * second, |second| 15 * second)), Some(Severity::Warning));
    assert_eq!(
        severity(&compiled(|second| 8.min(4 * second), |second| 15 * second)),
        None,
        "compiled at the start"
    );
    assert_eq!(severity(&compiled(|second| 2 * second, |second| 50 * second)), None, "more than graphs take");
    assert_eq!(severity(&compiled(|second| 2 * second, |_| 0)), None);
}

#[test]
fn a_version_is_named_only_where_what_leaks_is_used_and_memory_grows() {
    let found = |torch: &str, python: &str, what: &str, each: u64| {
        let mut run = counted(what, |_| 2, |_| 0, move |second| 200 * MIB + each * second * MIB, |_| 4);
        let facts = [("torch.version", torch), ("python.version", python)];
        let facts = facts.map(|(name, text)| (name.to_owned(), Fact::Text(text.to_owned())));
        says(&mut run, 1.0, AgentMessage::Inside { facts: facts.into_iter().collect() });
        run.verdict().findings.iter().any(|finding| finding.cause == "torch-known-bad-versions")
    };
    assert!(found("2.3.0+cu121", "3.11.7", "compiled-graphs", 10));
    assert!(!found("2.3.1+cu121", "3.11.7", "compiled-graphs", 10), "mended");
    assert!(!found("2.3.0+cu121", "3.10.13", "compiled-graphs", 10), "not on this Python");
    assert!(!found("2.3.0+cu121", "3.11.7", "process-groups", 10), "nothing is compiled");
    assert!(!found("2.3.0+cu121", "3.11.7", "compiled-graphs", 0), "nothing grows");
}

fn waiting(batches: u64, each: u64) -> AgentMessage {
    let batch = Some(Weight { objects: 0, arrays: 0, tensors: each });
    AgentMessage::Waiting(Waiting { batches, outstanding: 16, worker: Some(2), waited_s: 4.0, batch })
}

#[test]
fn batches_behind_a_late_one_are_reported_where_they_filled_the_shared_memory() {
    let run = |batches: u64, each: u64, at: f64| {
        let mut run = Run::with_trainer();
        run.quiet(1.0);
        says(&mut run, at, waiting(batches, each));
        run.tick(at + 0.5, vec![reading(TRAINER, MAIN, "python")], |sample| {
            sample.filesystems = vec![shm(127 * MIB, 128 * MIB, 20, 1 << 20)];
        });
        let report =
            raised("RuntimeError", "unable to write to file </torch_1_2_3>: No space left on device (28)");
        run.exception(30.0, TRAINER, report);
        run.ended(30.1, TRAINER, Ending::Exited(1)).finish(30.2, Ending::Exited(1));
        let verdict = run.verdict();
        let found = verdict.findings.iter().find(|finding| finding.cause == "out-of-order-reorder-buffer");
        found.map(|finding| (finding.severity, sentences(finding)))
    };
    let (severity, sentence) = run(14, 8 * MIB, 28.0).unwrap();
    assert_eq!(severity, Severity::Warning);
    assert!(sentence.contains("held 14 of 16 finished batches"), "{sentence}");
    assert!(sentence.contains("waiting for loader worker 2"), "{sentence}");
    assert_eq!(run(14, 8 * MIB, 2.0).unwrap().0, Severity::Note, "long before");
    assert_eq!(run(4, 8 * MIB, 28.0), None, "few wait");
    assert_eq!(run(14, MIB, 28.0), None, "they are small");
}

#[test]
fn shuffle_buffers_of_workers_are_summed_up() {
    let run = |each: u64, killed: bool| {
        let mut run = Run::with_trainer();
        for worker in 0..2 {
            let pid = 301 + worker as i32;
            run.process(0.5, pid, TRAINER, Role::LoaderWorker(Some(worker)), limits(), 1000);
        }
        let all = |held: u64| {
            let mut workers = vec![reading(MAIN, 1, "python"), grown(200 * MIB, 4)];
            workers.extend([301, 302].map(|pid| {
                let mut worker = reading(pid, TRAINER, "python");
                if let Measured::Known(memory) = &mut worker.memory {
                    memory.anonymous = Bytes(100 * MIB + held);
                }
                worker
            }));
            workers
        };
        run.tick(1.0, all(0), |sample| sample.cgroups = vec![group("/job", GIB, 2 * GIB, 0, 0)]);
        for pid in [301, 302] {
            let name = "shuffled, data.py:17".to_owned();
            let torch_count =
                TorchCount { what: "shuffle-buffer".into(), count: 1000, bytes: Some(each), name };
            run.event(
                5.0,
                EventKind::Agent { id: Some(id(pid)), pid, message: AgentMessage::TorchCount(torch_count) },
            );
        }
        let kills = u64::from(killed);
        run.tick(5.5, all(each), |sample| {
            sample.cgroups = vec![group("/job", 2 * GIB, 2 * GIB, kills, kills)];
        });
        if killed {
            run.ended(6.0, 301, Ending::Signaled(9));
        }
        run.finish(6.5, Ending::Exited(i32::from(killed)));
        run.verdict()
    };
    let verdict = run(600 * MIB, true);
    assert_eq!(causes(&verdict), ["streaming-shuffle-buffer", "memcg-oom-kill"], "the kill is how it died");
    assert_eq!(verdict.findings[0].explains, ["memcg-oom-kill"]);
    let said = sentences(&verdict.findings[0]);
    assert!(said.contains("2 processes held 1.17 GiB in shuffle buffers"), "{said}");
    assert!(said.contains("had 1,000 samples of 614 KiB each in shuffled, data.py:17"), "{said}");
    assert_eq!(causes(&run(20 * MIB, true)), ["memcg-oom-kill"], "they are small");
    assert!(run(600 * MIB, false).findings.iter().any(|f| f.cause == "streaming-shuffle-buffer"));
    assert!(run(600 * MIB, false).healthy);
}

fn object(size: u64) -> AgentMessage {
    AgentMessage::Collective(Collective {
        of: "all_gather_object".into(),
        line: "train.py:31".into(),
        ranks: 2,
        object: Some(Weight { objects: size, arrays: 0, tensors: 0 }),
    })
}

/// A rank sends an object, takes so much memory, and is killed so many seconds later.
fn gathers(size: u64, takes: u64, after: f64, killed: bool) -> Verdict {
    let mut run = Run::with_trainer();
    let hits = |killed: bool| u64::from(killed);
    let tick = |run: &mut Run, at: f64, anonymous: u64, kills: u64| {
        run.tick(at, vec![reading(MAIN, 1, "python"), grown(anonymous, 4)], |sample| {
            sample.cgroups = vec![group("/job", GIB, GIB, kills, kills)];
        });
    };
    tick(&mut run, 1.0, 200 * MIB, 0);
    tick(&mut run, 2.0, 200 * MIB, 0);
    says(&mut run, 2.5, object(size));
    tick(&mut run, 2.5 + after, 200 * MIB + takes, hits(killed));
    let ending = if killed { Ending::Signaled(9) } else { Ending::Exited(0) };
    run.ended(2.6 + after, TRAINER, ending);
    let code = Ending::Exited(i32::from(killed));
    run.tick(2.7 + after, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", 100 * MIB, GIB, hits(killed), hits(killed))];
    });
    run.finish(2.8 + after, code);
    run.verdict()
}

#[test]
fn an_object_on_its_way_when_a_rank_is_killed_is_why_the_limit_was_met() {
    let verdict = gathers(100 * MIB, 600 * MIB, 2.0, true);
    assert_eq!(causes(&verdict), ["object-collectives-pickle", "memcg-oom-kill"]);
    assert_eq!(verdict.findings[0].explains, ["memcg-oom-kill"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
    assert!(sentences(&verdict.findings[0])
        .contains("all_gather_object at train.py:31 with an object of 100 MiB in 2 ranks"));
    let slow = gathers(100 * MIB, 600 * MIB, 20.0, true);
    assert_eq!(causes(&slow), ["memcg-oom-kill", "object-collectives-pickle"], "it may be over by then");
    for (size, takes, after, what) in [
        (MIB, 600 * MIB, 2.0, "more than such an object takes"),
        (100 * MIB, 10 * MIB, 2.0, "it took little"),
        (100 * MIB, 600 * MIB, 60.0, "long ago"),
    ] {
        assert_eq!(causes(&gathers(size, takes, after, true)), ["memcg-oom-kill"], "{what}");
    }
}

/// On a busy machine the kill comes before the next reading.
#[test]
fn what_the_kernel_found_in_a_rank_counts_as_a_reading() {
    let killed_with = |mib: u64, second: bool| {
        let mut run = Run::with_trainer();
        let other = |mut trainer: ProcessReading| {
            trainer.id = id(TRAINER + 1);
            trainer
        };
        let tick = |run: &mut Run, at: f64, processes: Vec<ProcessReading>, kills: u64| {
            run.tick(at, processes, |sample| sample.cgroups = vec![group("/job", GIB, GIB, kills, kills)]);
        };
        let ranks =
            [grown(200 * MIB, 4), other(grown(200 * MIB, 4))].into_iter().take(1 + usize::from(second));
        tick(&mut run, 1.0, std::iter::once(reading(MAIN, 1, "python")).chain(ranks).collect(), 0);
        says(&mut run, 1.5, object(100 * MIB));
        if second {
            let (pid, message) = (TRAINER + 1, object(100 * MIB));
            run.event(1.5, EventKind::Agent { id: Some(id(pid)), pid, message });
        }
        let kill = KernelOomKill {
            constraint: OomConstraint::Cgroup,
            pid: TRAINER,
            task: "python".into(),
            oom_cgroup: Some("/job".into()),
            task_cgroup: Some("/job".into()),
            anonymous: mib * MIB,
            file: 0,
            shared: 0,
        };
        run.kernel_kill(1.7, kill).ended(1.75, TRAINER, Ending::Signaled(9));
        tick(&mut run, 1.8, vec![reading(MAIN, 1, "python")], 1);
        run.finish(2.0, Ending::Exited(1));
        run.verdict()
    };
    let verdict = killed_with(500, false);
    assert_eq!(causes(&verdict), ["object-collectives-pickle", "memcg-oom-kill"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
    assert_eq!(causes(&killed_with(255, false)), ["memcg-oom-kill"], "it took little");
    assert_eq!(causes(&killed_with(255, true)).len(), 2, "the other took as much, and was not read again");
}

#[test]
fn a_large_object_that_fits_is_a_note() {
    let verdict = gathers(300 * MIB, 900 * MIB, 2.0, false);
    assert!(verdict.healthy);
    assert_eq!(verdict.findings[0].cause, "object-collectives-pickle");
    assert!(gathers(50 * MIB, 300 * MIB, 2.0, false).findings.is_empty());
}

#[test]
fn an_image_that_is_too_large_is_recognised_by_its_decoder() {
    let failed = |type_name: &str, text: &str, frame: &str| {
        let mut run = Run::with_trainer();
        run.quiet(1.0);
        let mut report = raised(type_name, text);
        report.stack = vec!["data.py:9 __getitem__".into(), frame.into()];
        run.exception(2.1, TRAINER, report)
            .ended(2.2, TRAINER, Ending::Exited(1))
            .finish(2.3, Ending::Exited(1));
        run.verdict().findings.into_iter().find(|finding| finding.cause == "pil-image-decode")
    };
    let bomb = "Image size (400000000 pixels) exceeds limit of 178956970 pixels, could be decompression bomb DOS attack.";
    let refused =
        failed("DecompressionBombError", bomb, "…/PIL/Image.py:3438 _decompression_bomb_check").unwrap();
    assert_eq!((refused.severity, refused.status()), (Severity::Fatal, Status::Established));
    assert!(sentences(&refused).contains("takes 1.12 GiB (3 bytes a pixel)"), "{}", sentences(&refused));
    let refused = failed("MemoryError", "", "…/PIL/ImageFile.py:260 load").unwrap();
    assert_eq!((refused.severity, refused.status()), (Severity::Warning, Status::Supported));
    assert!(failed("MemoryError", "", "data.py:12 collate").is_none());
    assert!(
        failed("UnidentifiedImageError", "cannot identify image file", "…/PIL/Image.py:3498 open").is_none()
    );
}

#[test]
fn memory_that_was_refused_inside_a_collective_is_reported() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let mut report = raised("MemoryError", "");
    report.stack = vec![
        "train.py:31 evaluate".into(),
        "…/torch/distributed/distributed_c10d.py:3501 all_gather_object".into(),
        "…/torch/distributed/distributed_c10d.py:3405 _object_to_tensor".into(),
    ];
    run.exception(2.1, TRAINER, report).ended(2.2, TRAINER, Ending::Exited(1)).finish(2.3, Ending::Exited(1));
    assert!(causes(&run.verdict()).contains(&"object-collectives-pickle"));
}
