//! What stands behind a kill: a backlog, copies of ranks, a growth; and how the job died under it.

use super::build::*;
use ullage_model::{
    AgentMessage, Backlog, Bytes, Census, Collective, Ending, EventKind, Garbage, Item, KernelOomKill,
    LimitKind, LoaderSettings, Measured, OomConstraint, ProcessMemory, ProcessReading, Retainer, Role,
    Sample, Severity, Status, TorchCount, Verdict, Weight,
};

fn sized(pid: i32, anonymous: u64) -> ProcessReading {
    let mut process = reading(pid, if pid == MAIN { 1 } else { MAIN }, "python");
    process.memory =
        Measured::Known(ProcessMemory { anonymous: Bytes(anonymous), ..ProcessMemory::default() });
    process
}

/// Processes of these roles that hold so many MiB at the last reading before the first of them is killed, at 9.5 s, in a
/// cgroup of 1 GiB; half of it at half that time.
fn killed(roles: &[(Role, u64)], more: impl FnOnce(&mut Run)) -> Verdict {
    let mut run = Run::new();
    for (n, (role, _)) in roles.iter().enumerate() {
        run.process(0.5, 300 + n as i32, MAIN, role.clone(), limits(), 1000);
    }
    for second in 1..10u64 {
        let held = |mib: u64| mib * MIB * second / 9;
        let ranks = roles.iter().enumerate().map(|(n, (_, mib))| sized(300 + n as i32, held(*mib)));
        let all: Vec<ProcessReading> = std::iter::once(sized(MAIN, 20 * MIB)).chain(ranks).collect();
        let whole: u64 = roles.iter().map(|(_, mib)| held(*mib)).sum();
        run.tick(second as f64, all, |sample| {
            sample.cgroups = vec![group("/job", (whole + 20 * MIB).min(GIB - MIB), GIB, 0, second)];
        });
    }
    more(&mut run);
    run.ended(9.5, 300, Ending::Signaled(9));
    run.tick(9.6, vec![sized(MAIN, 20 * MIB)], |sample| {
        sample.cgroups = vec![group("/job", 25 * MIB, GIB, 1, 20)];
    });
    run.finish(9.8, Ending::Exited(1));
    run.verdict()
}

fn backlog(run: &mut Run) {
    let item = Some(Weight { arrays: 8 * MIB, ..Weight::default() });
    let backlog =
        |items, age_s| Backlog { number: 1, of: "Pool.imap".into(), items, maxsize: None, item, age_s };
    for (at, items) in [(2.0, 16), (4.0, 32), (8.0, 64)] {
        let message = AgentMessage::Backlog(backlog(items, at));
        run.event(at, EventKind::Agent { id: Some(id(300)), pid: 300, message });
    }
}

#[test]
fn ranks_that_each_hold_as_much_stand_before_the_kill_that_they_led_to() {
    let verdict = killed(&[(Role::Rank(0), 480), (Role::Rank(1), 430)], |_| {});
    assert_eq!(causes(&verdict), ["per-rank-copies", "memcg-oom-kill"]);
    let first = &verdict.findings[0];
    assert_eq!((first.severity, first.status()), (Severity::Fatal, Status::Hypothesis));
    assert!(first.explains.contains(&"memcg-oom-kill".to_owned()));
    assert!(sentences(first).contains("2 processes that share nothing held 910 MiB"), "{}", sentences(first));
    let kill = sentences(&verdict.findings[1]);
    assert!(kill.contains("rank 0 (pid 300) 480 MiB, rank 1 (pid 301) 430 MiB, "), "{kill}");
}

/// Two workers forked by a parent that has so many MiB: what each holds after a second and at the end.
fn forked(parent: u64, first: u64, last: u64) -> Verdict {
    let mut run = Run::new();
    for pid in [300, 301] {
        run.process(1.5, pid, MAIN, Role::Other, limits(), 1000);
        if let Some(ullage_model::Item::Event(event)) = run.items.last_mut() {
            if let EventKind::ProcessSeen { facts } = &mut event.what {
                facts.forked_from = Some(id(MAIN));
            }
        }
    }
    for second in 1..10u64 {
        let held = match second {
            1 => 0,
            2 => parent + 5,
            _ => first + (last - first) * (second - 3) / 6,
        };
        let workers = [300, 301].map(|pid| sized(pid, held * MIB));
        let all: Vec<ProcessReading> = std::iter::once(sized(MAIN, parent * MIB)).chain(workers).collect();
        run.tick(second as f64, all, |sample| {
            sample.cgroups = vec![group("/job", (2 * held + parent).min(1023) * MIB, GIB, 0, second)];
        });
    }
    run.ended(9.5, 300, Ending::Signaled(9));
    run.tick(9.6, vec![sized(MAIN, parent * MIB)], |sample| {
        sample.cgroups = vec![group("/job", 25 * MIB, GIB, 1, 20)];
    });
    run.finish(9.8, Ending::Exited(1));
    run.verdict()
}

#[test]
fn workers_of_a_server_that_load_after_the_fork_hold_alike_too() {
    let verdict = forked(20, 480, 490);
    assert_eq!(causes(&verdict), ["per-rank-copies", "memcg-oom-kill"]);
    let first = &verdict.findings[0];
    assert!(first.fixes[0].command.contains("--preload"), "{:?}", first.fixes);
    for (parent, first, last) in [(400, 480, 490), (20, 40, 490)] {
        let verdict = forked(parent, first, last);
        assert!(
            !causes(&verdict).contains(&"per-rank-copies"),
            "it had that already, or it grows: {parent} {first}"
        );
    }
}

#[test]
fn what_was_sent_to_a_spawned_process_is_there_in_its_sender_too() {
    let mut run = Run::new();
    run.process(0.5, 300, MAIN, Role::Trainer, limits(), 1000);
    let begun = AgentMessage::Process {
        name: "SpawnProcess-1".into(),
        target: "torch.multiprocessing.spawn._wrap".into(),
        worker: None,
        start_method: Some("spawn".into()),
        anonymous: Some(100 * MIB),
        dataset: None,
        arguments: None,
    };
    run.event(1.0, EventKind::Agent { id: Some(id(300)), pid: 300, message: begun });
    for second in 1..10u64 {
        let held = |mib: u64| mib * MIB * second / 9;
        run.tick(second as f64, vec![sized(MAIN, held(520)), sized(300, held(430))], |sample| {
            sample.cgroups = vec![group("/job", held(950), GIB, 0, second)];
        });
    }
    run.ended(9.5, MAIN, Ending::Signaled(9));
    run.tick(9.6, vec![sized(300, 20 * MIB)], |sample| {
        sample.cgroups = vec![group("/job", 25 * MIB, GIB, 1, 20)];
    });
    run.finish(9.8, Ending::Signaled(9));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict)[0], "per-rank-copies");
    assert!(verdict.findings[0].fixes[0].title.contains("path"), "{:?}", verdict.findings[0].fixes);
}

#[test]
fn one_process_unequal_ones_and_small_ones_are_no_copies() {
    for (what, roles) in [
        ("one", vec![(Role::Rank(0), 900)]),
        ("unequal", vec![(Role::Rank(0), 700), (Role::Rank(1), 250)]),
        ("small", (0..5).map(|n| (Role::Rank(n), 190)).collect()),
    ] {
        assert_eq!(causes(&killed(&roles, |_| {}))[0], "memcg-oom-kill", "{what}");
    }
}

#[test]
fn a_backlog_that_filled_the_limit_stands_before_the_kill_and_alone() {
    let verdict = killed(&[(Role::Trainer, 600), (Role::Trainer, 400)], backlog);
    assert_eq!(causes(&verdict), ["queue-backlog-unbounded", "memcg-oom-kill"]);
    assert_eq!(verdict.findings[0].severity, Severity::Fatal);
}

/// Where its one thread is when much has come, at these seconds.
fn works(run: &mut Run, pid: i32, at: impl IntoIterator<Item = u32>, inner: &[&str]) {
    let outer = ["/job/train.py:40 <module>", "/job/train.py:22 resume"];
    let stack: Vec<String> = outer.iter().chain(inner).map(ToString::to_string).collect();
    for second in at {
        let message = AgentMessage::Work { stacks: vec![stack.clone()] };
        run.event(f64::from(second) + 0.2, EventKind::Agent { id: Some(id(pid)), pid, message });
    }
}

const LOADS: [&str; 2] =
    ["/lib/torch/serialization.py:1500 load", "/lib/torch/serialization.py:1993 persistent_load"];

#[test]
fn the_work_in_which_most_came_stands_before_the_kill() {
    let loading = |pid: i32| move |run: &mut Run| works(run, pid, 1..10, &LOADS);
    let one = killed(&[(Role::Trainer, 900)], loading(300));
    assert_eq!(causes(&one), ["checkpoint-load-copies", "memcg-oom-kill"]);
    let first = &one.findings[0];
    assert_eq!((first.severity, first.status()), (Severity::Fatal, Status::Supported));
    let said = sentences(first);
    assert!(said.contains("800 MiB of the 900 MiB that it held came meanwhile"), "{said}");
    assert!(said.contains("called from /job/train.py:40"), "{said}");
    let ranks = [(Role::Rank(0), 480), (Role::Rank(1), 430)];
    let both = killed(&ranks, |run| [300, 301].into_iter().for_each(|pid| works(run, pid, 1..10, &LOADS)));
    assert_eq!(causes(&both), ["checkpoint-load-copies", "memcg-oom-kill"]);
    let said = sentences(&both.findings[0]);
    assert!(said.contains("382 MiB came to other processes in the midst of the same"), "{said}");
    // No look fell into the load of the one that was killed: the other does the same.
    assert!(causes(&killed(&ranks, loading(301))).contains(&"checkpoint-load-copies"));
}

#[test]
fn ranks_that_were_killed_while_their_samplers_list_all_indices_are_no_copies() {
    const ASKS: &str = "/lib/torch/utils/data/dataloader.py:733 _next_index";
    let ranks = [(Role::Rank(0), 480), (Role::Rank(1), 430)];
    let in_both = |inner: &[&str]| {
        killed(&ranks, |run| [300, 301].into_iter().for_each(|pid| works(run, pid, 1..10, inner)))
    };
    for inner in [
        &[ASKS, "/job/sampler.py:20 __iter__", "/job/sampler.py:20 tolist()"][..],
        &["/job/sampler.py:9 __init__", "/lib/torch/utils/data/sampler.py:160 __iter__"],
    ] {
        let verdict = in_both(inner);
        assert_eq!(causes(&verdict), ["sampler-index-lists", "memcg-oom-kill"]);
        assert_eq!(verdict.findings[0].status(), Status::Supported);
    }
    let fetches = [ASKS, "/lib/torch/utils/data/_utils/fetch.py:54 fetch", "/job/data.py:8 __getitem__"];
    assert_eq!(causes(&in_both(&fetches)), ["per-rank-copies", "memcg-oom-kill"]);
}

/// So many pool workers are started at 8.4 s; the first is killed at 9.1 s with so many MiB, in a cgroup of 700 MiB.
fn killed_as_they_start(number: i32, mib: u64, spawned: bool) -> Verdict {
    let mut run = Run::new();
    let cgroup = |mib: u64, kills: u64| {
        move |sample: &mut Sample| {
            sample.cgroups = vec![group("/job", mib * MIB, 700 * MIB, kills, kills)];
        }
    };
    for second in 1..9 {
        run.tick(f64::from(second), vec![sized(MAIN, 150 * MIB)], cgroup(151, 0));
    }
    for pid in 300..300 + number {
        run.process(8.4, pid, MAIN, Role::PoolWorker, limits(), 1000);
        if let Some(Item::Event(event)) = run.items.last_mut() {
            if let EventKind::ProcessSeen { facts } = &mut event.what {
                match spawned {
                    true => facts.command_line.push("--multiprocessing-fork".into()),
                    false => facts.forked_from = Some(id(MAIN)),
                }
            }
        }
    }
    let workers = (300..300 + number).map(|pid| sized(pid, 16 * MIB));
    run.tick(8.6, std::iter::once(sized(MAIN, 150 * MIB)).chain(workers).collect(), cgroup(240, 0));
    let kill = KernelOomKill {
        constraint: OomConstraint::Cgroup,
        pid: 300,
        task: "python".into(),
        oom_cgroup: Some("/job".into()),
        task_cgroup: Some("/job".into()),
        anonymous: mib * MIB,
        ..KernelOomKill::default()
    };
    run.kernel_kill(9.1, kill).ended(9.1, 300, Ending::Signaled(9));
    run.tick(9.2, vec![sized(MAIN, 150 * MIB)], cgroup(160, 1)).finish(9.4, Ending::Exited(1));
    run.verdict()
}

#[test]
fn workers_that_do_not_fit_as_they_start_load_the_same_each() {
    let verdict = killed_as_they_start(5, 110, true);
    assert_eq!(causes(&verdict), ["worker-import-overhead", "memcg-oom-kill"]);
    let (found, said) = (&verdict.findings[0], sentences(&verdict.findings[0]));
    assert_eq!(found.status(), Status::Hypothesis);
    assert!(found.is_cause_of(&verdict.findings[1]) && said.contains("all of them need 550 MiB"), "{said}");
    assert_eq!(
        causes(&killed_as_they_start(5, 480, true)),
        ["memcg-oom-kill"],
        "it was the one that took so much"
    );
    assert_eq!(causes(&killed_as_they_start(1, 500, true)), ["memcg-oom-kill"], "one");
    assert_eq!(causes(&killed_as_they_start(5, 30, true)), ["memcg-oom-kill"], "they are little of it");
    assert_eq!(
        causes(&killed_as_they_start(5, 110, false)),
        ["memcg-oom-kill"],
        "they share what was loaded"
    );
}

const STOPS: [&str; 3] = [
    "/job/train.py:31 profile",
    "/lib/torch/profiler/profiler.py:215 stop_trace",
    "/lib/torch/autograd/profiler.py:590 _parse_kineto_results",
];

#[test]
fn a_kill_while_a_profiler_lists_its_records_is_the_profilers() {
    let verdict = killed(&[(Role::Trainer, 900)], |run| works(run, 300, 1..10, &STOPS));
    assert_eq!(causes(&verdict), ["profiler-and-debug-hooks", "memcg-oom-kill"]);
    // Each batch of a loader passes by one of its files.
    let step = ["/job/train.py:31 step", "/lib/torch/autograd/profiler.py:778 __enter__"];
    let verdict = killed(&[(Role::Trainer, 900)], |run| works(run, 300, 1..10, &step));
    assert_eq!(causes(&verdict), ["memcg-oom-kill"]);
}

#[test]
fn what_a_profiler_listed_is_named_though_the_job_ended_well() {
    let ended = |come: u64, stack: &[&str]| {
        let mut run = Run::new();
        for second in 1..40u32 {
            let more = come * u64::from(second.clamp(20, 25) - 20) / 5;
            run.tick(f64::from(second), vec![sized(MAIN, (300 + more) * MIB)], |_| {});
            if (20..25).contains(&second) {
                works(&mut run, MAIN, [second], stack);
            }
        }
        run.finish(40.0, Ending::Exited(0));
        run.verdict()
    };
    let verdict = ended(400, &STOPS);
    let found = &verdict.findings[0];
    let said = sentences(found);
    assert_eq!((causes(&verdict), found.status()), (vec!["profiler-and-debug-hooks"], Status::Supported));
    assert!(said.contains("400 MiB came") && said.contains("called from profile() (train.py:31)"), "{said}");
    assert!(causes(&ended(80, &STOPS)).is_empty(), "little");
    assert!(causes(&ended(400, &["/job/train.py:31 step"])).is_empty());
}

/// A trainer that rests at 400 MiB until it comes to 600 in the last two of nine seconds, with its stacks each half of one.
fn spike(stacks: impl Fn(u32) -> Vec<Vec<String>>) -> Verdict {
    spike_of(|half| [460, 560, 600].get((half as usize).wrapping_sub(15)).copied().unwrap_or(400), stacks)
}

/// Of so many MiB in each half of a second.
fn spike_of(mib: impl Fn(u32) -> u64, stacks: impl Fn(u32) -> Vec<Vec<String>>) -> Verdict {
    let mut run = Run::new();
    run.process(0.5, 300, MAIN, Role::Trainer, limits(), 1000);
    for half in 1..19u32 {
        let held = mib(half) * MIB;
        let at = f64::from(half) / 2.0;
        run.tick(at, vec![sized(MAIN, 20 * MIB), sized(300, held)], |sample| {
            sample.cgroups = vec![group("/job", held + 20 * MIB, 640 * MIB, 0, u64::from(half))];
        });
        let message = AgentMessage::Work { stacks: stacks(half) };
        run.event(at + 0.1, EventKind::Agent { id: Some(id(300)), pid: 300, message });
    }
    run.ended(9.3, 300, Ending::Signaled(9));
    run.tick(9.4, vec![sized(MAIN, 20 * MIB)], |sample| {
        sample.cgroups = vec![group("/job", 25 * MIB, 640 * MIB, 1, 20)];
    });
    run.finish(9.6, Ending::Exited(1));
    run.verdict()
}

fn stack(frames: &[&str]) -> Vec<String> {
    frames.iter().map(ToString::to_string).collect()
}

#[test]
fn what_came_since_a_job_was_at_rest_is_what_its_work_brought() {
    let step = stack(&["/job/train.py:40 <module>", "/job/train.py:31 step"]);
    let save = ["/job/train.py:44 <module>", "/job/writer.py:9 execute", "/job/writer.py:27 preload"];
    let copies = stack(&[&save[..], &["/job/writer.py:27 bucket.clone()"]].concat());
    let waits =
        stack(&["/job/train.py:44 <module>", "/job/writer.py:9 execute", "/lib/threading.py:327 wait"]);
    let saves = stack(&["/lib/torch/serialization.py:960 save"]);
    let verdict = spike(|half| match half {
        ..15 => vec![step.clone()],
        15 | 16 => vec![copies.clone()],
        _ => vec![waits.clone(), saves.clone()],
    });
    assert_eq!(causes(&verdict), ["model-copies-on-cpu", "memcg-oom-kill"]);
    let said = sentences(&verdict.findings[0]);
    let wanted = "was in execute() (writer.py:9), called from train.py:44, when the kernel killed for lack of memory: \
                  140 MiB of the 600 MiB that it held came meanwhile, 140 MiB of it while copying whole tensors";
    assert!(said.contains(wanted), "{said}");
    // The same copies in each step, all along, are no reason that more came at last.
    let always = spike(|_| vec![copies.clone()]);
    assert_eq!(causes(&always)[0], "memcg-oom-kill");
    // Lists made of arrays by a function of C.
    let lists =
        stack(&["/job/train.py:40 <module>", "/job/data.py:27 to_dict", "/job/data.py:27 values.tolist()"]);
    let verdict = spike(|half| vec![if half < 15 { step.clone() } else { lists.clone() }]);
    assert_eq!(causes(&verdict), ["numpy-object-pandas-conversion", "memcg-oom-kill"]);
    let kill = sentences(&verdict.findings[1]);
    assert!(
        kill.contains("came while it was in values.tolist() (data.py:27), called from to_dict()"),
        "{kill}"
    );
}

/// It is built until shortly before, and loads files into it one after the other, with something else between them.
#[test]
fn what_came_since_a_job_stood_still_just_before_is_what_its_work_brought() {
    let build = stack(&["/job/train.py:40 <module>", "/job/train.py:31 build"]);
    let load = |line: u32, inner: &[&str]| {
        let call = format!("/job/optimizer.py:{line} load_shard");
        stack(&[&["/job/train.py:44 <module>", call.as_str()], inner].concat())
    };
    let level = |half: u32| match half {
        ..8 => 50 * u64::from(half),
        8..13 => 400,
        _ => 400 + 40 * (u64::from(half) - 12),
    };
    let imports = ["/lib/torch/serialization.py:1520 load", "/lib/tokenize.py:529 match()"];
    let inners: [&[&str]; 2] = [&LOADS, &imports];
    for inner in inners {
        let verdict = spike_of(level, |half| match half {
            ..8 => vec![build.clone()],
            8..13 => vec![stack(&["/job/train.py:42 <module>"])],
            13..16 => vec![load(47, inner)],
            _ => vec![load(51, &["/job/optimizer.py:51 sum()"])],
        });
        assert_eq!(causes(&verdict), ["checkpoint-load-copies", "memcg-oom-kill"], "{inner:?}");
        let said = sentences(&verdict.findings[0]);
        assert!(said.contains("was in load_shard() (optimizer.py:51), called from train.py:44"), "{said}");
    }
    // What rose all the time stood nowhere.
    let verdict = spike_of(
        |half| 30 * u64::from(half),
        |half| match half {
            ..13 => vec![build.clone()],
            13..16 => vec![load(47, &LOADS)],
            _ => vec![load(51, &[])],
        },
    );
    assert_ne!(causes(&verdict)[0], "checkpoint-load-copies");
}

/// Steps go up and down, and the save is a call of its own; the kernel's figure is the only reading after it had begun.
#[test]
fn a_save_that_comes_above_all_steps_is_why_even_where_only_the_kernel_read_it() {
    let of = |level: &dyn Fn(u32) -> u64, saves: &dyn Fn(u32) -> bool, last: u64, later: f64| {
        let mut run = Run::new();
        run.process(0.5, 300, MAIN, Role::Trainer, limits(), 1000);
        for half in 1..19u32 {
            let (at, held) = (f64::from(half) / 2.0, level(half) * MIB);
            run.tick(at, vec![sized(MAIN, 20 * MIB), sized(300, held)], |sample| {
                sample.cgroups = vec![group("/job", held + 20 * MIB, 640 * MIB, 0, u64::from(half))];
            });
            let inner = if saves(half) { "/job/train.py:9 save_checkpoint" } else { "/job/train.py:31 step" };
            let message = AgentMessage::Work { stacks: vec![stack(&["/job/train.py:40 <module>", inner])] };
            run.event(at + 0.1, EventKind::Agent { id: Some(id(300)), pid: 300, message });
        }
        let kill = KernelOomKill {
            constraint: OomConstraint::Cgroup,
            pid: 300,
            task: "python".into(),
            oom_cgroup: Some("/job".into()),
            task_cgroup: Some("/job".into()),
            anonymous: last * MIB,
            file: 0,
            shared: 0,
        };
        run.kernel_kill(9.2 + later, kill).ended(9.25 + later, 300, Ending::Signaled(9));
        run.tick(9.3 + later, vec![sized(MAIN, 20 * MIB)], |sample| {
            sample.cgroups = vec![group("/job", 25 * MIB, 640 * MIB, 1, 20)];
        });
        run.finish(9.5 + later, Ending::Exited(1));
        run.verdict().findings[0].cause.clone()
    };
    let steps = |half: u32| if half < 4 { 100 * u64::from(half) } else { 300 + 100 * u64::from(half % 2) };
    let leaks = |half: u32| if half == 2 { 500 } else { 100 + 22 * u64::from(half) };
    let at_last = |half: u32| half == 18;
    assert_eq!(of(&steps, &at_last, 600, 0.0), "checkpoint-save-staging");
    assert_ne!(
        of(&steps, &|half| half > 9 && half % 3 == 0, 600, 0.0),
        "checkpoint-save-staging",
        "it went well"
    );
    assert_ne!(of(&leaks, &at_last, 600, 0.0), "checkpoint-save-staging", "it grew below what it once had");
    assert_ne!(of(&steps, &at_last, 420, 0.0), "checkpoint-save-staging", "it brought nothing");
}

#[test]
fn what_ranks_had_for_a_gather_is_no_reason_beside_it() {
    let of = |sent: u64, seen: std::ops::Range<u32>, beside: bool| {
        let mut roles = vec![(Role::Rank(0), 480), (Role::Rank(1), 430)];
        roles.extend(beside.then_some((Role::LoaderWorker(Some(0)), 400)));
        let verdict = killed(&roles, |run| {
            for pid in [300, 301] {
                cache(run, pid, 300, 320);
                let gathers = ["/lib/torch/distributed/distributed_c10d.py:3405 _object_to_tensor"];
                works(run, pid, seen.clone(), &gathers);
                works(run, pid, seen.end..9, &["/job/train.py:31 step"]);
                let object = Some(Weight { objects: sent * MIB, ..Weight::default() });
                let sent =
                    Collective { of: "gather_object".into(), line: "train.py:31".into(), ranks: 2, object };
                let message = AgentMessage::Collective(sent);
                run.event(5.5, EventKind::Agent { id: Some(id(pid)), pid, message });
            }
            if beside {
                cache(run, 302, 380, 390);
            }
        });
        verdict.findings.into_iter().map(|finding| finding.cause).collect::<Vec<_>>()
    };
    let found = of(320, 6..9, false);
    assert_eq!(found[..2], ["object-collectives-pickle", "memcg-oom-kill"]);
    assert!(found.contains(&"unbounded-caches".to_owned()));
    // Most of what came since it began, and yet less than they had had before.
    for (sent, seen, beside, what) in [
        (800, 6..9, false, "what was sent is another object"),
        (320, 6..8, false, "it was over"),
        (320, 9..9, false, "nobody saw it in the midst of that"),
    ] {
        assert_eq!(of(sent, seen, beside)[0], "unbounded-caches", "{what}");
    }
    assert_eq!(of(320, 6..9, true)[0], "unbounded-caches", "another has as much that it never sent");
}

#[test]
fn a_kill_says_in_which_call_most_came() {
    let said = |collects: u32| {
        let verdict = killed(&[(Role::Trainer, 900)], |run| {
            works(run, 300, 1..collects, &["/job/train.py:31 step"]);
            works(run, 300, collects..10, &["/job/rows.py:9 collect"]);
        });
        assert_eq!(causes(&verdict), ["memcg-oom-kill"]);
        sentences(&verdict.findings[0])
    };
    let call = "500 MiB of the 900 MiB that it held came while it was in collect() (rows.py:9), called from resume() (train.py:22).";
    assert!(said(4).contains(call), "{}", said(4));
    let outer = "800 MiB of the 900 MiB that it held came while it was in resume() (train.py:22), called from train.py:40.";
    assert!(said(8).contains(outer), "{}", said(8));
    assert!(!sentences(&killed(&[(Role::Trainer, 900)], |_| {}).findings[0]).contains("came while"));
}

#[test]
fn work_that_is_over_or_brought_little_or_goes_on_all_the_time_is_no_reason_of_a_kill() {
    let causes_of = |more: &dyn Fn(&mut Run)| causes(&killed(&[(Role::Trainer, 900)], more))[0].to_owned();
    let steps = ["/job/train.py:31 step"];
    let over = |run: &mut Run| {
        works(run, 300, 1..5, &LOADS);
        works(run, 300, 5..10, &steps);
    };
    let little = |run: &mut Run| {
        works(run, 300, 1..8, &steps);
        works(run, 300, 8..10, &LOADS);
    };
    let long_ago = |run: &mut Run| works(run, 300, 1..5, &LOADS);
    let samples = |run: &mut Run| {
        let fetch = ["/lib/torch/utils/data/_utils/fetch.py:52 fetch"];
        works(run, 300, 1..10, &[fetch[0], LOADS[0], LOADS[1]]);
    };
    for way in [&over as &dyn Fn(&mut Run), &little, &long_ago, &samples] {
        assert_ne!(causes_of(way), "checkpoint-load-copies");
    }
    // A thread that saves all the time, beside a main thread that works or that waits for it.
    let beside = |main: &'static str| {
        move |run: &mut Run| {
            let stack = |inner: &[&str]| inner.iter().map(ToString::to_string).collect::<Vec<String>>();
            for second in 1..10 {
                let stacks = vec![stack(&["/job/train.py:40 <module>", main]), stack(&LOADS)];
                let message = AgentMessage::Work { stacks };
                run.event(f64::from(second) + 0.2, EventKind::Agent { id: Some(id(300)), pid: 300, message });
            }
        }
    };
    assert_eq!(causes_of(&beside("/job/train.py:31 step")), "memcg-oom-kill");
    assert_eq!(causes_of(&beside("/lib/python3.11/threading.py:327 wait")), "checkpoint-load-copies");
    let images = |run: &mut Run| works(run, 300, 1..10, &["/lib/PIL/Image.py:997 load"]);
    assert_eq!(causes_of(&images), "memcg-oom-kill");
}

#[test]
fn ranks_that_hold_alike_in_the_midst_of_work_that_was_named_are_no_copies() {
    let verdict = killed(&[(Role::Rank(0), 480), (Role::Rank(1), 430)], |run| {
        for pid in [300, 301] {
            let object = Some(Weight { objects: 100 * MIB, ..Weight::default() });
            let sent =
                Collective { of: "all_gather_object".into(), line: "train.py:31".into(), ranks: 2, object };
            run.event(
                5.5,
                EventKind::Agent { id: Some(id(pid)), pid, message: AgentMessage::Collective(sent) },
            );
        }
    });
    assert_eq!(causes(&verdict), ["object-collectives-pickle", "memcg-oom-kill"], "{:?}", verdict.findings);
}

/// A cache that grew by so many MiB in a process.
fn cache(run: &mut Run, pid: i32, explains: u64, of: u64) {
    cache_until(run, pid, explains, of, 8.0);
}

fn cache_until(run: &mut Run, pid: i32, explains: u64, of: u64, last: f64) {
    for (at, number) in [(2.0, 1u32), (last, 2)] {
        let retainer = Retainer {
            name: "rows".into(),
            place: "Rows.__getitem__(), train.py:31".into(),
            type_name: "dict".into(),
            element: "bytes".into(),
            length: 400 * u64::from(number),
            before: Some(400),
            bytes: explains * MIB,
            own_bytes: explains * MIB,
            more_bytes: explains * MIB,
            of_bytes: of * MIB,
            ..Retainer::default()
        };
        let census = Census {
            number,
            grown: of * MIB,
            retainers: Some(retainer).into_iter().filter(|_| number == 2).collect(),
            ..Census::default()
        };
        let message = AgentMessage::Census(Box::new(census));
        run.event(at, EventKind::Agent { id: Some(id(pid)), pid, message });
    }
}

#[test]
fn a_cache_in_each_of_several_workers_stands_before_the_kill() {
    let workers: Vec<(Role, u64)> = (0..12).map(|n| (Role::LoaderWorker(Some(n)), 80)).collect();
    let verdict = killed(&workers, |run| (0..12).for_each(|n| cache(run, 300 + n, 60, 70)));
    assert_eq!(causes(&verdict), ["unbounded-caches", "memcg-oom-kill"], "{:?}", verdict.findings);
    let verdict = killed(&workers, |run| (1..12).for_each(|n| cache_until(run, 300 + n, 60, 70, 9.58)));
    assert_eq!(
        causes(&verdict),
        ["unbounded-caches", "memcg-oom-kill"],
        "those that lived on were read after it"
    );
    assert_eq!(verdict.findings[0].severity, Severity::Fatal);
    assert!(verdict.findings[0].explains.contains(&"memcg-oom-kill".to_owned()));
}

#[test]
fn a_cache_in_one_worker_stands_for_those_without_a_census() {
    let of = |roles: &[(Role, u64)]| {
        let verdict = killed(roles, |run| cache(run, 300, 300, 320));
        verdict.findings[0].cause.clone()
    };
    let workers: Vec<(Role, u64)> = (0..3).map(|n| (Role::LoaderWorker(Some(n)), 320)).collect();
    assert_eq!(of(&workers), "unbounded-caches");
    let others = [(Role::LoaderWorker(Some(0)), 320), (Role::Trainer, 320), (Role::Other, 320)];
    assert_ne!(of(&others), "unbounded-caches", "what does other work is another matter");
}

#[test]
fn what_garbage_comes_of_stands_before_the_kill_that_it_led_to() {
    let verdict = killed(&[(Role::Rank(0), 950)], |run| {
        for at in [3.0, 8.0] {
            let circles = TorchCount {
                what: "autograd-circles".into(),
                count: 8 * at as u64,
                bytes: Some(50 * at as u64 * MIB),
                name: "Double".into(),
            };
            let garbage = Garbage { objects: 80, inspected: 80, garbage: 77, bytes: 200 * MIB, old: false };
            let census = Census { number: 1, grown: 300 * MIB, garbage: Some(garbage), ..Census::default() };
            for message in [AgentMessage::TorchCount(circles), AgentMessage::Census(Box::new(census))] {
                run.event(at, EventKind::Agent { id: Some(id(300)), pid: 300, message });
            }
        }
    });
    let found = causes(&verdict);
    assert_eq!(found[0], "autograd-function-ctx-leak", "{:?}", verdict.findings);
    assert_eq!(verdict.findings[0].severity, Severity::Fatal);
    assert!(found.contains(&"gc-disabled-or-deferred") && found.contains(&"memcg-oom-kill"), "{found:?}");
}

#[test]
fn what_came_only_after_the_kill_is_no_reason_of_it() {
    let of = |begun: f64| {
        let verdict = killed(&[(Role::Trainer, 100), (Role::LoaderWorker(Some(0)), 850)], |run| {
            let loader = LoaderSettings {
                workers: 1,
                start_method: Some("spawn".into()),
                dataset: Some("__main__.Samples".into()),
                dataset_len: Some(400),
                ..LoaderSettings::default()
            };
            let message = AgentMessage::Loader(Box::new(loader));
            run.event(1.0, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message });
            let message = AgentMessage::Process {
                name: "Process-1".into(),
                target: "torch.utils.data._utils.worker._worker_loop".into(),
                worker: Some(0),
                start_method: Some("spawn".into()),
                anonymous: Some(810 * MIB),
                dataset: Some(Weight { objects: 800 * MIB, ..Weight::default() }),
                arguments: None,
            };
            run.event(begun, EventKind::Agent { id: Some(id(301)), pid: 301, message });
        });
        causes(&verdict)[0].to_owned()
    };
    assert_eq!((of(3.0).as_str(), of(9.58).as_str()), ("spawn-forkserver-full-copy", "memcg-oom-kill"));
}

#[test]
fn a_queue_that_fills_once_its_consumer_was_killed_is_no_reason_of_the_kill() {
    let mut run = Run::new();
    run.process(0.5, 300, MAIN, Role::Other, limits(), 1000);
    run.process(0.5, 301, MAIN, Role::Trainer, limits(), 1000);
    for second in 1..40u64 {
        let (consumer, queue) = (880 * second / 9, 20 * second.saturating_sub(10));
        let mut all = vec![sized(MAIN, 20 * MIB), sized(301, (60 + queue) * MIB)];
        let before = second < 10;
        if before {
            all.push(sized(300, consumer * MIB));
        }
        let whole = 80 + queue + if before { consumer } else { 0 };
        if second == 10 {
            run.ended(9.5, 300, Ending::Signaled(9));
        }
        run.tick(second as f64, all, |sample| {
            sample.cgroups = vec![group("/job", whole * MIB, GIB, u64::from(!before), second)];
        });
        if second % 6 == 0 && queue > 0 {
            let item = Some(Weight { arrays: 10 * MIB, ..Weight::default() });
            let (of, age_s) = ("multiprocessing.Queue".into(), second as f64);
            let backlog = Backlog { number: 1, of, items: queue / 10, maxsize: None, item, age_s };
            let message = AgentMessage::Backlog(backlog);
            run.event(second as f64 + 0.1, EventKind::Agent { id: Some(id(301)), pid: 301, message });
        }
    }
    run.finish(40.2, Ending::Exited(1));
    let verdict = run.verdict();
    let found = causes(&verdict);
    assert!(found[0].contains("oom") && found.contains(&"queue-backlog-unbounded"), "{found:?}");
    assert!(verdict.findings.iter().all(|finding| finding.explains.is_empty()), "{:?}", verdict.findings);
}

#[test]
fn what_is_read_later_of_a_process_that_lived_on_explains_the_kill_all_the_same() {
    let item = Some(Weight { arrays: 10 * MIB, ..Weight::default() });
    let verdict = killed(&[(Role::LoaderWorker(Some(0)), 100), (Role::Trainer, 850)], |run| {
        for (at, items) in [(2.0, 16), (4.0, 32), (8.0, 64), (9.58, 80)] {
            let of = "queue.Queue".into();
            let backlog = Backlog { number: 1, of, items, maxsize: None, item, age_s: at };
            let message = AgentMessage::Backlog(backlog);
            run.event(at, EventKind::Agent { id: Some(id(301)), pid: 301, message });
        }
    });
    assert_eq!(causes(&verdict), ["queue-backlog-unbounded", "memcg-oom-kill"], "{:?}", verdict.findings);
    assert!(verdict.findings[0].at > verdict.findings[1].at, "{:?}", verdict.findings);
    assert!(verdict.findings[0].explains.contains(&"memcg-oom-kill".to_owned()));
}

#[test]
fn what_was_counted_some_time_before_the_kill_is_compared_with_what_had_come_by_then() {
    // At 5 s half of it had come, and most of that was circles; nobody counted later.
    let verdict = killed(&[(Role::Rank(0), 950)], |run| {
        for at in [3.0, 5.0] {
            let circles = TorchCount {
                what: "autograd-circles".into(),
                count: 8 * at as u64,
                bytes: Some(64 * at as u64 * MIB),
                name: "Double".into(),
            };
            let message = AgentMessage::TorchCount(circles);
            run.event(at, EventKind::Agent { id: Some(id(300)), pid: 300, message });
        }
    });
    assert_eq!(causes(&verdict), ["autograd-function-ctx-leak", "memcg-oom-kill"], "{:?}", verdict.findings);
}

#[test]
fn a_cause_of_a_minority_of_what_came_explains_no_kill() {
    let roles = [(Role::Trainer, 650), (Role::Other, 300)];
    let verdict = killed(&roles, |run| cache(run, 301, 240, 250));
    let cache = verdict.findings.iter().find(|finding| finding.cause == "unbounded-caches").unwrap();
    assert_eq!(cache.explains, Vec::<String>::new(), "240 MiB of 950");
    assert_eq!(causes(&verdict)[0], "memcg-oom-kill");
}

#[test]
fn the_limit_that_killed_is_shown_as_it_stood() {
    let verdict = killed(&[(Role::Rank(0), 480), (Role::Rank(1), 480)], |_| {});
    let limit = verdict.limits.iter().find(|limit| limit.kind == LimitKind::CgroupMemory).unwrap();
    assert!(limit.used.known().unwrap() > 900 * MIB, "{limit:?}");
}
