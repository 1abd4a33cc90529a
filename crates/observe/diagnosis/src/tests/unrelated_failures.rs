//! pids-limit-cgroup, nproc-rlimit, orphan-workers and zombie-children.

use super::build::*;
use ullage_model::{Ending, EventKind, Limit, Outcome, ProcessState, Role, Severity, Status};

fn threads_refused(refused: u64, nproc: Option<u64>, threads: u32, uid: u32) -> Run {
    let mut run = Run::new();
    let mut of = limits();
    of.processes = nproc.map_or(Limit::Unlimited, Limit::At);
    run.process(0.1, TRAINER, MAIN, Role::Trainer, of, uid);
    for (at, refused) in [(1.0, 0), (2.0, refused)] {
        let mut trainer = reading(TRAINER, MAIN, "python");
        trainer.threads = threads;
        run.tick(at, vec![trainer], |sample| {
            sample.cgroups = vec![pids("/job", 20 + 20 * refused.min(1), 40, refused)]
        });
    }
    run
}

fn cannot_start(run: &mut Run, nproc: Option<u64>, threads: u64) {
    let mut report = raised("RuntimeError", "can't start new thread");
    report.counts.nproc = nproc;
    report.counts.threads = Some(threads);
    report.counts.mappings = Some(900);
    report.counts.max_map_count = Some(65_530);
    run.exception(2.1, TRAINER, report).ended(2.2, TRAINER, Ending::Exited(1)).finish(2.3, Ending::Exited(1));
}

#[test]
fn a_moved_pids_counter_establishes_the_cgroup() {
    let mut run = threads_refused(3, Some(40), 30, 1000);
    cannot_start(&mut run, Some(40), 30);
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["pids-limit-cgroup"], "not the user's limit");
    assert_eq!(verdict.findings[0].status(), Status::Established);
    assert!(sentences(&verdict.findings[0]).contains("refused 3 new tasks: all of its 40 tasks"));
}

#[test]
fn the_counter_suffices_without_the_agent_too() {
    let mut run = threads_refused(1, None, 30, 1000);
    run.ended(2.2, TRAINER, Ending::Signaled(11)).finish(2.3, Ending::Exited(1));
    assert_eq!(causes(&run.verdict()), ["pids-limit-cgroup"]);
    let mut survived = threads_refused(1, None, 30, 1000);
    survived.ended(2.2, TRAINER, Ending::Exited(0)).finish(2.3, Ending::Exited(0));
    assert_eq!(survived.verdict().findings[0].severity, Severity::Warning);
}

#[test]
fn a_fork_that_the_kernel_refused_in_a_cgroup_of_others_says_nothing_of_this_job() {
    let of = |refused_in: &str| {
        let mut run = threads_refused(0, Some(40), 38, 1000);
        run.event(2.05, EventKind::KernelForkRejected { cgroup: refused_in.into() });
        cannot_start(&mut run, Some(40), 39);
        causes(&run.verdict()).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of("/jobs/other"), ["nproc-rlimit"]);
    assert_eq!(of("/job"), ["pids-limit-cgroup"]);
}

#[test]
fn a_counter_at_rest_with_a_users_limit_is_the_user() {
    let mut run = threads_refused(0, Some(40), 38, 1000);
    cannot_start(&mut run, Some(40), 39);
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["nproc-rlimit"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
    let mut root = threads_refused(0, Some(40), 38, 0);
    cannot_start(&mut root, Some(40), 39);
    assert!(causes(&root.verdict()).is_empty(), "root is exempt");
}

#[test]
fn the_users_limit_without_the_agent() {
    let near: &[&str] = &["nproc-rlimit"];
    // Threads seen, the limit, what is found, and whether a limit in reach is left open.
    for (threads, limit, found, open) in
        [(39, 40, near, false), (2, 40, &[], true), (2, 1_000_000, &[], false)]
    {
        let mut run = threads_refused(0, Some(limit), threads, 1000);
        run.ended(2.2, TRAINER, Ending::Exited(1)).finish(2.3, Ending::Exited(1));
        let verdict = run.verdict();
        assert_eq!(causes(&verdict), found, "{threads} of {limit}");
        assert_eq!(undetermined(&verdict).contains(&"nproc-rlimit"), open, "{threads} of {limit}");
    }
}

#[test]
fn a_counter_of_the_jobs_own_group_needs_no_full_reading_and_an_ancestors_does() {
    for (path, found) in [("/job", true), ("/", false)] {
        let mut run = Run::with_trainer();
        for (at, refused) in [(1.0, 0), (2.0, 5)] {
            run.tick(at, vec![reading(TRAINER, MAIN, "python")], |sample| {
                let mut group = pids(path, 2, 40, refused);
                group.version = ullage_model::CgroupVersion::V2;
                sample.cgroups = vec![group];
            });
        }
        run.ended(2.2, TRAINER, Ending::Exited(1)).finish(2.3, Ending::Exited(1));
        assert_eq!(causes(&run.verdict()).contains(&"pids-limit-cgroup"), found, "{path}");
    }
}

#[test]
fn an_unrelated_eagain_is_nothing() {
    let mut run = threads_refused(0, None, 3, 1000);
    let mut report = raised("BlockingIOError", "[Errno 11] Resource temporarily unavailable");
    report.stack = vec!["client.py:3 recv".into()];
    run.exception(2.1, TRAINER, report).ended(2.2, TRAINER, Ending::Exited(1)).finish(2.3, Ending::Exited(1));
    assert!(run.verdict().findings.is_empty());
}

fn survivors(ending: Ending, role: Role) -> ullage_model::Verdict {
    let mut run = Run::new();
    run.process(0.1, 300, MAIN, role, limits(), 1000);
    run.tick(1.0, vec![reading(MAIN, 1, "python"), reading(300, MAIN, "python")], |sample| {
        sample.cgroups = vec![group("/job", GIB, 0, 0, 0)]
    });
    run.ended(2.0, MAIN, ending);
    run.tick(2.1, vec![reading(300, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", GIB, 0, 0, 0)]
    });
    run.facts.outcome = Some(Outcome::from_ending(ending));
    run.event(2.2, EventKind::Finished { survivors: vec![id(300)] });
    run.verdict()
}

#[test]
fn a_process_that_outlives_a_killed_command_is_an_orphan() {
    let verdict = survivors(Ending::Signaled(9), Role::Other);
    assert_eq!(causes(&verdict), ["orphan-workers"]);
    assert!(verdict.findings[0].fixes.iter().any(|fix| fix.command == "kill 300"));
    assert!(sentences(&verdict.findings[0]).contains("200 MiB"));
    assert_eq!(causes(&survivors(Ending::Exited(1), Role::PoolWorker)), ["orphan-workers"]);
}

#[test]
fn a_daemon_after_a_good_end_is_a_note_and_a_tracker_nothing() {
    let verdict = survivors(Ending::Exited(0), Role::Other);
    assert!(verdict.healthy);
    assert_eq!(verdict.findings[0].severity, Severity::Note);
    assert!(causes(&survivors(Ending::Signaled(9), Role::ResourceTracker)).is_empty());
    assert!(survivors(Ending::Exited(0), Role::Forkserver).healthy, "leaves by itself");
}

#[test]
fn a_loader_worker_that_watches_its_trainer_is_a_note_and_one_of_a_forkserver_stays() {
    const SERVER: i32 = 250;
    let of = |parent: i32| {
        let mut run = Run::new();
        run.process(0.1, SERVER, MAIN, Role::Forkserver, limits(), 1000);
        run.process(0.2, 300, parent, Role::LoaderWorker(Some(0)), limits(), 1000);
        run.tick(1.0, vec![reading(MAIN, 1, "python"), reading(300, parent, "python")], |_| {});
        run.ended(1.9, SERVER, Ending::Exited(0)).ended(2.0, MAIN, Ending::Signaled(9));
        run.facts.outcome = Some(Outcome::from_ending(Ending::Signaled(9)));
        run.event(8.0, EventKind::Finished { survivors: vec![id(300)] });
        run.verdict().findings[0].severity
    };
    assert_eq!((of(MAIN), of(SERVER)), (Severity::Note, Severity::Warning));
}

fn zombies(counts: &[usize]) -> ullage_model::Verdict {
    zombies_of(counts, 0).verdict()
}

/// In a group that allows 40 tasks, and refuses so many at the end, when it is full.
fn zombies_of(counts: &[usize], refused: u64) -> Run {
    let mut run = Run::new();
    for (tick, count) in counts.iter().enumerate() {
        let mut all = vec![reading(MAIN, 1, "python")];
        all.extend((0..*count).map(|n| {
            let mut child = reading(1000 + n as i32, MAIN, "true");
            child.state = ProcessState::Zombie;
            child.memory = ullage_model::Measured::Missing(ullage_model::Missing::Vanished);
            child
        }));
        let refused = if tick + 1 == counts.len() { refused } else { 0 };
        run.tick(tick as f64 + 1.0, all, |sample| {
            sample.cgroups = vec![pids("/job", (*count as u64 + 2).max(38 * refused), 40, refused)]
        });
    }
    run.finish(counts.len() as f64 + 1.5, Ending::Exited(i32::from(refused > 0)));
    run
}

#[test]
fn what_a_process_ends_as_it_exits_and_nobody_waits_for_are_no_zombies() {
    let of = |counts: &[usize], bye: f64| {
        let mut run = zombies_of(counts, 0);
        let message = ullage_model::AgentMessage::Bye {
            figures: Default::default(),
            retained_by_iterators: Default::default(),
        };
        run.event(bye, EventKind::Agent { id: Some(id(MAIN)), pid: MAIN, message });
        causes(&run.verdict()).contains(&"zombie-children")
    };
    assert!(!of(&[0, 0, 0, 0, 0, 17, 17], 5.5), "its games, which it ended");
    assert!(of(&[0, 10, 20, 30, 40, 40, 40], 5.5), "they were there before");
    assert!(!zombies(&[0, 0, 0, 0, 0, 0, 17]).findings.iter().any(|one| one.cause == "zombie-children"));
}

#[test]
fn zombies_that_are_most_of_the_tasks_of_a_full_group_explain_its_refusal() {
    let verdict = zombies_of(&[0, 10, 20, 30, 38, 38], 1).verdict();
    assert_eq!(causes(&verdict), ["zombie-children", "pids-limit-cgroup"]);
    assert_eq!(verdict.findings[0].explains, ["pids-limit-cgroup"]);
    assert_eq!(verdict.findings[0].severity, Severity::Fatal);
    assert!(sentences(&verdict.findings[0]).contains("all of its 40 tasks (pids.max) were in use"));
    let few = zombies_of(&[0, 5, 10, 12, 12, 12], 1).verdict();
    assert_eq!(causes(&few), ["pids-limit-cgroup", "zombie-children"]);
}

/// A server whose threads become more and more, and a client that ends when the server's group of so many tasks is full.
fn threads_in_a_group_of(limit: u64) -> ullage_model::Verdict {
    let (mut run, client) = (Run::with_trainer(), 300);
    run.process(0.1, client, MAIN, Role::Other, limits(), 1000);
    for second in 1..=30 {
        let mut server = reading(TRAINER, MAIN, "python");
        server.threads = 4 + 5 * second;
        run.tick(f64::from(second), vec![server, reading(client, MAIN, "python")], |sample| {
            sample.cgroups = vec![pids("/job", limit - 1, limit, u64::from(second == 30))]
        });
    }
    run.ended(30.1, client, Ending::Exited(1)).finish(30.5, Ending::Exited(1));
    run.verdict()
}

#[test]
fn threads_that_fill_a_group_explain_what_it_refused_whoever_met_it() {
    let verdict = threads_in_a_group_of(162);
    assert_eq!(causes(&verdict), ["threads-per-task", "pids-limit-cgroup"], "{:?}", verdict.findings);
    assert_eq!(verdict.findings[0].severity, Severity::Fatal);
    assert_ne!(verdict.findings[0].process, verdict.findings[1].process);
    assert!(verdict.findings[0].is_cause_of(&verdict.findings[1]));
    assert_eq!(causes(&threads_in_a_group_of(400))[0], "pids-limit-cgroup", "160 threads of 400 tasks");
}

#[test]
fn what_python_forked_is_an_orphan_of_a_killed_parent_and_a_program_is_not() {
    let of = |comm: &str, role: Role, killed: Ending| {
        let mut run = Run::new();
        run.process(0.1, TRAINER, MAIN, Role::Rank(0), limits(), 1000);
        run.process(0.2, 300, TRAINER, role, limits(), 1000);
        if let Some(ullage_model::Item::Event(event)) = run.items.last_mut() {
            if let EventKind::ProcessSeen { facts } = &mut event.what {
                facts.forked_from = Some(id(TRAINER));
            }
        }
        let all = |parent| vec![reading(MAIN, 1, "python"), reading(300, parent, comm)];
        run.tick(1.0, [all(TRAINER), vec![reading(TRAINER, MAIN, "python")]].concat(), |_| {});
        run.ended(2.0, TRAINER, killed);
        (3..20).for_each(|second| {
            run.tick(f64::from(second), all(1), |_| {});
        });
        run.ended(20.0, 300, Ending::Signaled(9)).finish(20.5, Ending::Exited(1));
        causes(&run.verdict()).contains(&"orphan-workers")
    };
    assert!(of("python3", Role::Other, Ending::Signaled(6)));
    assert!(!of("redis-server", Role::Other, Ending::Signaled(6)), "it may be meant to stay");
    assert!(!of("python3", Role::Helper, Ending::Signaled(6)));
    assert!(!of("python3", Role::Other, Ending::Exited(0)), "nobody killed its parent");
}

#[test]
fn zombies_that_pile_up_are_reported_with_their_parent() {
    let verdict = zombies(&[0, 10, 20, 30, 40]);
    assert_eq!(causes(&verdict), ["zombie-children"]);
    assert_eq!(verdict.findings[0].process.as_ref().map(|p| p.id), Some(id(MAIN)));
    assert!(
        sentences(&verdict.findings[0]).contains("30 children"),
        "those seen twice: {}",
        sentences(&verdict.findings[0])
    );
}

#[test]
fn few_zombies_and_reaped_ones_are_nothing() {
    assert!(zombies(&[0, 3, 5, 5, 5]).healthy);
    assert!(zombies(&[0, 30, 30, 0, 0]).healthy);
    assert!(zombies(&[0, 0, 40]).healthy, "seen once: about to be reaped");
}

#[test]
fn of_many_marks_the_last_stay() {
    let mut run = Run::with_trainer();
    for number in 0..300 {
        let text = format!("epoch {number}");
        run.event(1.0 + f64::from(number) / 100.0, EventKind::Mark { id: None, pid: MAIN, text });
    }
    run.finish(9.0, Ending::Exited(0));
    let marks = run.verdict().marks;
    assert_eq!(
        (marks.len(), marks[0].text.as_str(), marks[255].text.as_str()),
        (256, "epoch 44", "epoch 299")
    );
}
