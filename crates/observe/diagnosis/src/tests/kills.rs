//! memcg-oom-kill, host-oom-kill, invisible-child-oom, and SIGKILLs that are none of them.

use super::build::*;
use ullage_model::{EndedBy, Ending, KernelOomKill, OomConstraint, Outcome, OutcomeKind, Severity, Status};

const WORKER: i32 = 300;

fn line(pid: i32, host: bool) -> KernelOomKill {
    KernelOomKill {
        constraint: if host { OomConstraint::Host } else { OomConstraint::Cgroup },
        pid,
        task: "python".into(),
        oom_cgroup: (!host).then(|| "/job".into()),
        task_cgroup: Some("/job".into()),
        anonymous: 900 * MIB,
        ..KernelOomKill::default()
    }
}

/// Main and a worker in a cgroup of 1 GiB; the worker is killed at 2.5 s; the counter then stands at `kills`.
fn worker_killed(kills: u64) -> Run {
    let mut run = Run::new();
    run.process(0.2, WORKER, MAIN, ullage_model::Role::LoaderWorker(Some(0)), limits(), 1000);
    let both = || vec![reading(MAIN, 1, "python"), reading(WORKER, MAIN, "python")];
    run.tick(1.0, both(), |sample| sample.cgroups = vec![group("/job", 400 * MIB, GIB, 0, 0)]);
    run.tick(2.0, both(), |sample| sample.cgroups = vec![group("/job", GIB - MIB, GIB, 0, 9)]);
    run.ended(2.5, WORKER, Ending::Signaled(9));
    run.tick(3.0, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", 300 * MIB, GIB, kills, 99)];
        sample.host.oom_kills = ullage_model::Measured::Known(7);
    });
    run
}

#[test]
fn a_worker_killed_and_noticed_is_a_memcg_kill() {
    let mut run = worker_killed(1);
    run.exception(4.0, MAIN, raised("RuntimeError", "DataLoader worker (pid(s) 300) exited unexpectedly"));
    run.finish(4.2, Ending::Exited(1));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["memcg-oom-kill"]);
    let first = &verdict.findings[0];
    assert_eq!((first.status(), first.severity), (Status::Established, Severity::Fatal));
    assert_eq!(first.process.as_ref().map(|p| p.id), Some(id(WORKER)));
    assert!(sentences(first).contains("1 OOM kill in the cgroup /job"), "{}", sentences(first));
    assert!(sentences(first).contains("1023 MiB of 1 GiB"), "{}", sentences(first));
    assert_eq!(verdict.outcome.kind, OutcomeKind::Exit);
}

#[test]
fn a_kill_that_somebody_noticed_is_no_invisible_one_however_long_main_lives() {
    let mut run = worker_killed(1);
    run.process(0.3, 400, MAIN, ullage_model::Role::Trainer, limits(), 1000);
    run.exception(4.0, 400, raised("RuntimeError", "DataLoader worker (pid(s) 300) exited unexpectedly"));
    run.finish(60.0, Ending::Signaled(15));
    assert_eq!(causes(&run.verdict()), ["memcg-oom-kill"]);
}

#[test]
fn a_worker_killed_and_unnoticed_is_an_invisible_one() {
    let mut ended_well = worker_killed(1);
    ended_well.finish(4.0, Ending::Exited(0));
    let verdict = ended_well.verdict();
    assert_eq!(causes(&verdict), ["invisible-child-oom"]);
    assert_eq!(verdict.findings[0].severity, Severity::Warning);
    assert!(!verdict.healthy);
    let mut hung = worker_killed(1);
    hung.finish(60.0, Ending::Signaled(15));
    assert_eq!(causes(&hung.verdict()), ["invisible-child-oom"]);
}

#[test]
fn main_killed_for_its_cgroup_is_the_outcome() {
    let mut run = Run::new();
    run.tick(1.0, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", GIB, GIB, 3, 0)]
    });
    run.ended(1.5, MAIN, Ending::Signaled(9));
    run.tick(1.6, vec![], |sample| sample.cgroups = vec![group("/job", MIB, GIB, 4, 8)]);
    run.finish(1.6, Ending::Signaled(9));
    let outcome = run.verdict().outcome;
    assert_eq!(
        (outcome.kind, outcome.by, outcome.signal),
        (OutcomeKind::OomKill, Some(EndedBy::CgroupLimit), Some(9))
    );
}

#[test]
fn a_kill_elsewhere_and_a_sigkill_by_hand_make_no_oom() {
    let mut run = worker_killed(0);
    run.kernel_kill(
        2.4,
        KernelOomKill {
            task: "stress".into(),
            oom_cgroup: Some("/other".into()),
            task_cgroup: Some("/other".into()),
            ..line(9999, false)
        },
    );
    run.finish(3.2, Ending::Signaled(9));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), Vec::<&str>::new());
    assert!(verdict.undetermined.is_empty(), "{verdict:?}");
    assert_eq!(verdict.outcome.by, Some(EndedBy::Unknown));
}

#[test]
fn a_counter_that_the_kernel_log_gives_to_others_is_not_ours() {
    let mut run = worker_killed(1);
    run.kernel_kill(2.4, KernelOomKill { task: "stress".into(), ..line(9999, false) });
    run.finish(3.2, Ending::Signaled(9));
    assert_eq!(causes(&run.verdict()), Vec::<&str>::new());
}

#[test]
fn sigkill_with_unreadable_counters_cannot_be_determined() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    run.finish(1.5, Ending::Signaled(9));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), Vec::<&str>::new());
    assert_eq!(undetermined(&verdict), ["memcg-oom-kill"]);
    assert!(verdict.undetermined[0].because.contains("killed by SIGKILL"));
}

#[test]
fn no_reading_after_the_kill_leaves_the_last_one_as_support() {
    let mut run = Run::new();
    run.tick(1.0, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", 900 * MIB, GIB, 0, 0)]
    });
    run.tick(2.0, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", GIB - MIB, GIB, 0, 9)]
    });
    run.finish(2.1, Ending::Signaled(9));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["memcg-oom-kill"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
    assert_eq!(verdict.outcome.kind, OutcomeKind::Signal, "supported is not proof");
}

/// Job and ullage killed together: the recording just ends.
fn all_at_once(kills_after: Option<u64>) -> Run {
    let mut run = Run::new();
    run.tick(1.0, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", 500 * MIB, GIB, 0, 0)]
    });
    run.tick(2.0, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", GIB - MIB, GIB, 0, 50)]
    });
    if let Some(kills) = kills_after {
        run.tick(60.0, vec![], |sample| sample.cgroups = vec![group("/job", 0, GIB, kills, 80)]);
        run.facts.outcome = Some(Outcome::of(OutcomeKind::Unknown));
    }
    run
}

#[test]
fn a_group_killed_with_ullage_is_judged_by_the_counters_afterwards() {
    let verdict = all_at_once(Some(3)).verdict();
    assert_eq!(causes(&verdict), ["memcg-oom-kill"]);
    assert_eq!(
        (verdict.findings[0].status(), verdict.findings[0].severity),
        (Status::Established, Severity::Fatal)
    );
    assert_eq!(
        (verdict.outcome.kind, verdict.outcome.by),
        (OutcomeKind::OomKill, Some(EndedBy::CgroupLimit))
    );
    // Without the outcome that the caller sets, the later sample alone says that the job is over.
    let mut bare = all_at_once(Some(3));
    bare.facts.outcome = None;
    assert_eq!(causes(&bare.verdict()), ["memcg-oom-kill"]);
}

#[test]
fn a_group_without_counters_is_judged_by_the_last_samples() {
    let mut run = all_at_once(None);
    run.facts.outcome = Some(Outcome::of(OutcomeKind::Unknown));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["memcg-oom-kill"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
}

#[test]
fn a_run_that_goes_on_near_its_limit_is_not_dead() {
    let verdict = all_at_once(None).verdict();
    assert!(verdict.findings.is_empty());
    assert_eq!(verdict.outcome.kind, OutcomeKind::StillRunning);
    let mut running = all_at_once(None);
    running.facts.outcome = Some(Outcome::of(OutcomeKind::StillRunning));
    assert!(running.verdict().findings.is_empty());
}

#[test]
fn a_host_oom_needs_the_kernel_log() {
    let mut run = worker_killed(0);
    run.kernel_kill(2.6, KernelOomKill { oom_cgroup: None, ..line(WORKER, true) });
    run.finish(3.2, Ending::Exited(1));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["host-oom-kill"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
    let mut silent = Run::with_trainer();
    silent.tick(1.0, vec![reading(MAIN, 1, "python")], |sample| {
        sample.host.memory = ullage_model::Measured::Known(host(100 * MIB, 8 * GIB));
        sample.cgroups = vec![group("/job", GIB, 0, 0, 0)];
    });
    silent.finish(1.5, Ending::Signaled(9));
    let verdict = silent.verdict();
    assert_eq!(causes(&verdict), Vec::<&str>::new());
    assert_eq!(undetermined(&verdict), ["host-oom-kill"]);
}

#[test]
fn the_kernels_line_alone_establishes_a_kill() {
    let mut run = worker_killed(0);
    run.kernel_kill(2.6, line(WORKER, false));
    run.finish(3.2, Ending::Exited(1));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["memcg-oom-kill"]);
    assert!(sentences(&verdict.findings[0]).contains("The kernel killed "));
}

#[test]
fn on_v1_the_leaf_counts_the_kill_and_the_ancestor_the_limit() {
    let mut run = Run::new();
    let v1 = |path: &str, used, limit, kills, hits| ullage_model::CgroupReading {
        version: ullage_model::CgroupVersion::V1,
        ..group(path, used, limit, kills, hits)
    };
    run.tick(1.0, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![v1("/box/job", 500 * MIB, 0, 0, 0), v1("/box", 900 * MIB, GIB, 0, 3)]
    });
    run.ended(1.5, MAIN, Ending::Signaled(9));
    run.tick(1.6, vec![], |sample| {
        sample.cgroups = vec![v1("/box/job", 0, 0, 1, 0), v1("/box", 9 * MIB, GIB, 0, 1137)]
    });
    run.finish(1.6, Ending::Signaled(9));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["memcg-oom-kill"]);
    assert!(
        sentences(&verdict.findings[0]).contains("The cgroup held"),
        "{}",
        sentences(&verdict.findings[0])
    );
}

/// Main is killed at 1 GiB of its cgroup; a look that came after the kill, and before its end was noticed, finds nothing left.
fn killed_and_read_after() -> Run {
    let mut run = Run::new();
    let main = |mib: u64| {
        let mut main = reading(MAIN, 1, "python");
        if let ullage_model::Measured::Known(memory) = &mut main.memory {
            memory.anonymous = ullage_model::Bytes(mib * MIB);
        }
        main
    };
    run.tick(1.0, vec![main(900)], |sample| sample.cgroups = vec![group("/job", GIB - MIB, GIB, 0, 5)]);
    run.tick(1.4, vec![main(1)], |sample| sample.cgroups = vec![group("/job", MIB, GIB, 1, 9)]);
    run.finish(1.5, Ending::Signaled(9));
    run
}

#[test]
fn what_is_read_after_a_kill_is_no_evidence() {
    let verdict = killed_and_read_after().verdict();
    assert_eq!(causes(&verdict), ["memcg-oom-kill"]);
    let said = sentences(&verdict.findings[0]);
    assert!(said.contains("held 1023 MiB of 1 GiB, 0.5 s before"), "{said}");
    assert!(said.contains("The main process (pid 100) held 900 MiB of anonymous memory"), "{said}");
    assert!(!said.contains(" 1 MiB"), "{said}");
}

#[test]
fn a_kill_at_the_budget_is_reported_as_the_budget_that_the_user_set() {
    let mut run = killed_and_read_after();
    run.facts.memory_max = Some(GIB);
    let verdict = run.verdict();
    let first = &verdict.findings[0];
    assert_eq!(first.title, "The job reached its memory budget of 1 GiB (--memory-max)");
    assert_eq!(first.fixes[0].command, "ullage run --memory-max 1536MiB -- python train.py");
    assert!(!first.fixes.iter().any(|fix| fix.command.contains("docker") || fix.command.contains("sbatch")));
    // A smaller limit around it is somebody else's.
    run.facts.memory_max = Some(2 * GIB);
    assert!(!run.verdict().findings[0].title.contains("--memory-max"));
}

#[test]
fn remedies_fit_the_place_where_the_job_runs() {
    let offered = |runtime: &str, slurm: bool, loader: bool| {
        let mut run = killed_and_read_after();
        run.facts.machine.others.insert("container.runtime".into(), runtime.into());
        if slurm {
            run.facts.environment.insert("SLURM_CPUS_ON_NODE".into(), "4".into());
        }
        if loader {
            run.process(0.5, WORKER, MAIN, ullage_model::Role::LoaderWorker(None), limits(), 1000);
        }
        let verdict = run.verdict();
        let has = |what: &str| verdict.findings[0].fixes.iter().any(|fix| fix.command.contains(what));
        (has("docker run"), has("sbatch"), has("DataLoader("))
    };
    assert_eq!(offered("none", false, false), (false, false, false));
    assert_eq!(offered("docker", false, false), (true, false, false));
    assert_eq!(offered("none", true, true), (false, true, true));
}
