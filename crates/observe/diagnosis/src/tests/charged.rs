//! What a cgroup is charged for, and what that does: shared memory, page cache, the kernel's own, memory.high; and kills
//! that are no cgroup's: of bound nodes, of a daemon, of a scheduler.

use super::build::*;
use ullage_model::cgroup::{CgroupMemory, CgroupMemoryParts};
use ullage_model::{
    Bytes, CgroupReading, CgroupVersion, Ending, KernelOomKill, Limit, Measured, OomConstraint, Role,
    Severity, Status, Verdict,
};

/// A group of 1 GiB that holds these MiB: anonymous, page cache, shared, kernel.
fn holds(parts: [u64; 4], set: impl FnOnce(&mut CgroupMemory)) -> CgroupReading {
    let [anonymous, cache, shared, kernel] = parts.map(|mib| mib * MIB);
    let mut reading = group("/job", anonymous + cache + shared + kernel, GIB, 0, 0);
    if let Measured::Known(memory) = &mut reading.memory {
        memory.parts = Measured::Known(CgroupMemoryParts {
            anonymous: Bytes(anonymous),
            file: Bytes(cache + shared),
            shared: Bytes(shared),
            inactive_file: Bytes(cache / 2),
            kernel: Bytes(kernel),
        });
        set(memory);
    }
    reading
}

fn hits(hits: u64) -> impl FnOnce(&mut CgroupMemory) {
    move |memory| memory.limit_hits = Measured::Known(hits)
}

fn kills(count: u64) -> impl FnOnce(&mut CgroupMemory) {
    move |memory| {
        memory.limit_hits = Measured::Known(50);
        memory.oom_kills = Measured::Known(count);
    }
}

/// One tick of main beside this group.
fn tick(run: &mut Run, at: f64, group: CgroupReading) {
    run.tick(at, vec![reading(MAIN, 1, "python")], |sample| sample.cgroups = vec![group]);
}

fn notes(verdict: &Verdict) -> Vec<&str> {
    let notes = verdict.findings.iter().filter(|finding| finding.severity == Severity::Note);
    notes.map(|finding| finding.cause.as_str()).collect()
}

/// Main is killed for the limit at 3.5 s, with the group holding this at 3 s, and this much shared memory afterwards.
fn killed(at_the_end: [u64; 4], shared_after: u64) -> Verdict {
    killed_from([100, 0, 10, 5], at_the_end, shared_after)
}

/// The same, with the group holding that at first.
fn killed_from(first: [u64; 4], at_the_end: [u64; 4], shared_after: u64) -> Verdict {
    let mut run = Run::new();
    tick(&mut run, 1.0, holds(first, kills(0)));
    tick(&mut run, 3.0, holds(at_the_end, kills(0)));
    run.ended(3.5, MAIN, Ending::Signaled(9));
    run.tick(3.6, vec![], |sample| sample.cgroups = vec![holds([0, 0, shared_after, 5], kills(1))]);
    run.finish(3.6, Ending::Signaled(9));
    run.verdict()
}

#[test]
fn a_limit_met_by_shared_memory_is_reported_before_the_kill_and_one_met_by_objects_is_not() {
    let verdict = killed([100, 0, 800, 10], 800);
    assert_eq!(causes(&verdict), ["shmem-counts-twice-limits", "memcg-oom-kill"]);
    assert!(sentences(&verdict.findings[0]).contains("800 MiB of 1 GiB as shared memory"));
    assert_eq!(causes(&killed([980, 0, 20, 10], 20)), ["memcg-oom-kill"]);
    assert_eq!(causes(&killed([100, 880, 20, 10], 20)), ["memcg-oom-kill"], "page cache is no shared memory");
}

#[test]
fn shared_memory_that_was_most_of_what_came_is_why_also_where_a_model_holds_more() {
    let first = |from, end| causes(&killed_from(from, end, end[2]))[0].to_owned();
    assert_eq!(first([600, 0, 0, 5], [660, 50, 300, 5]), "shmem-counts-twice-limits");
    assert_eq!(first([200, 0, 0, 5], [700, 0, 300, 5]), "memcg-oom-kill", "more came that is anonymous");
    assert_eq!(first([690, 0, 300, 5], [700, 0, 310, 5]), "memcg-oom-kill", "it was there from the start");
    assert_eq!(first([400, 0, 0, 5], [450, 0, 300, 5]), "memcg-oom-kill", "nobody read what filled the rest");
}

#[test]
fn what_was_written_after_the_last_reading_is_seen_because_it_stays() {
    let verdict = killed([100, 0, 300, 10], 900);
    assert_eq!(causes(&verdict)[0], "shmem-counts-twice-limits");
    assert!(sentences(&verdict.findings[0]).contains("900 MiB of 1 GiB as shared memory"));
}

#[test]
fn page_cache_at_the_limit_is_a_note_and_the_run_is_well() {
    let mut run = Run::new();
    for (at, cache) in [(1.0, 200), (2.0, 880), (3.0, 900)] {
        tick(&mut run, at, holds([100, cache, 0, 5], hits(u64::from(cache > 800) * 99)));
    }
    run.finish(4.0, Ending::Exited(0));
    let verdict = run.verdict();
    assert!(verdict.healthy);
    assert_eq!(notes(&verdict), ["page-cache-charged"]);
    assert_eq!(verdict.findings[0].status(), Status::Established);
}

#[test]
fn a_leak_at_the_limit_shared_memory_and_cache_that_meets_no_limit_are_no_page_cache() {
    for parts in [[900, 100, 0, 5], [50, 0, 950, 5]] {
        let mut run = Run::new();
        tick(&mut run, 1.0, holds([100, 0, 0, 5], hits(0)));
        tick(&mut run, 2.0, holds(parts, hits(99)));
        run.finish(4.0, Ending::Exited(0));
        assert!(!notes(&run.verdict()).contains(&"page-cache-charged"), "{parts:?}");
    }
    let mut below = Run::new();
    tick(&mut below, 1.0, holds([100, 0, 0, 5], hits(0)));
    tick(&mut below, 2.0, holds([100, 880, 0, 5], hits(0)));
    below.finish(4.0, Ending::Exited(0));
    assert!(below.verdict().findings.is_empty());
}

#[test]
fn what_was_charged_before_the_job_is_reported() {
    let mut run = Run::new();
    tick(&mut run, 0.5, holds([10, 300, 100, 5], hits(0)));
    run.finish(4.0, Ending::Exited(0));
    assert_eq!(notes(&run.verdict()), ["cgroup-leftover-charge"]);
    let mut late = Run::new();
    tick(&mut late, 9.0, holds([10, 300, 100, 5], hits(0)));
    late.finish(9.5, Ending::Exited(0));
    assert!(late.verdict().findings.is_empty(), "the job may have read it");
}

#[test]
fn the_kernels_own_memory_is_a_note_and_part_of_the_cause_of_a_kill() {
    let mut run = Run::new();
    tick(&mut run, 1.0, holds([100, 0, 0, 10], hits(0)));
    tick(&mut run, 2.0, holds([100, 0, 0, 400], hits(0)));
    run.finish(4.0, Ending::Exited(0));
    let verdict = run.verdict();
    assert!(verdict.healthy);
    assert_eq!(notes(&verdict), ["kmem-slab-growth"]);
    assert_eq!(causes(&killed([600, 0, 0, 420], 0)), ["memcg-oom-kill", "kmem-slab-growth"]);
    assert_eq!(causes(&killed([980, 0, 0, 40], 0)), ["memcg-oom-kill"]);
}

/// A group with memory.high of 512 MiB, held at these MiB for eight seconds, with so many hits and so much waiting.
fn under_high(anonymous: u64, cache: u64, hits: u64, stalled_s: f64) -> Verdict {
    let mut run = Run::new();
    for second in 0..9u64 {
        let part = second as f64 / 8.0;
        let reading = holds([anonymous, cache, 0, 5], |memory| {
            memory.limit = Limit::Unlimited;
            memory.high = Limit::At(512 * MIB);
            memory.high_hits = Measured::Known((hits as f64 * part) as u64);
        });
        run.tick(second as f64 + 0.5, vec![reading_of_main()], |sample| {
            sample.cgroups = vec![reading];
            sample.host.memory_stall_some_us = Measured::Known((stalled_s * part * 1e6) as u64);
        });
    }
    run.finish(9.0, Ending::Exited(0));
    run.verdict()
}

fn reading_of_main() -> ullage_model::ProcessReading {
    reading(MAIN, 1, "python")
}

#[test]
fn memory_high_slows_whoever_stands_at_it_with_what_cannot_be_dropped() {
    let verdict = under_high(510, 0, 4000, 6.0);
    assert_eq!(causes(&verdict), ["memory-high-throttle"]);
    assert_eq!((verdict.findings[0].status(), verdict.healthy), (Status::Established, false));
    assert!(under_high(100, 410, 4000, 6.0).healthy, "page cache");
    assert!(under_high(510, 0, 4000, 0.1).healthy, "nobody waited");
    assert!(under_high(510, 0, 3, 6.0).healthy, "a few hits");
}

#[test]
fn huge_pages_are_a_hypothesis_where_memory_ran_out_and_nothing_elsewhere() {
    let run = |mode: &str, huge: u64, dies: bool| {
        let mut run = Run::new();
        run.facts.machine.transparent_hugepages = Measured::Known(mode.into());
        let set = |kills: u64| {
            move |memory: &mut CgroupMemory| {
                memory.oom_kills = Measured::Known(kills);
                memory.anonymous_huge = Measured::Known(Bytes(huge * MIB * (1 - kills)));
            }
        };
        let anonymous = if dies { 1000 } else { 400 };
        tick(&mut run, 1.0, holds([100, 0, 0, 5], set(0)));
        tick(&mut run, 2.0, holds([anonymous, 0, 0, 5], set(0)));
        if dies {
            run.ended(2.5, MAIN, Ending::Signaled(9));
            run.tick(2.6, vec![], |sample| sample.cgroups = vec![holds([0, 0, 0, 5], set(1))]);
        }
        run.finish(2.7, if dies { Ending::Signaled(9) } else { Ending::Exited(0) });
        run.verdict()
    };
    assert_eq!(causes(&run("always", 900, true)), ["memcg-oom-kill", "thp-always-rss-bloat"]);
    assert_eq!(causes(&run("madvise", 900, true)), ["memcg-oom-kill"]);
    assert_eq!(notes(&run("madvise", 900, true)), ["thp-always-rss-bloat"]);
    assert_eq!(causes(&run("always", 90, true)), ["memcg-oom-kill"]);
    assert!(run("always", 390, false).findings.is_empty());
}

#[test]
fn a_kill_of_bound_nodes_is_no_cgroups_and_no_hosts() {
    for constraint in [OomConstraint::Numa, OomConstraint::Cgroup] {
        let mut run = Run::with_trainer();
        run.quiet(1.0);
        let kill = KernelOomKill {
            constraint,
            pid: TRAINER,
            task: "python".into(),
            task_cgroup: Some("/job".into()),
            ..KernelOomKill::default()
        };
        run.kernel_kill(1.6, kill).ended(1.5, TRAINER, Ending::Signaled(9)).finish(2.0, Ending::Exited(1));
        let expected = if constraint == OomConstraint::Numa { "numa-membind-oom" } else { "memcg-oom-kill" };
        assert_eq!(causes(&run.verdict()), [expected]);
    }
}

#[test]
fn a_kill_that_is_reported_again_with_its_sizes_is_one() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let kill = KernelOomKill {
        constraint: OomConstraint::Numa,
        pid: TRAINER,
        task: "python".into(),
        task_cgroup: Some("/job".into()),
        ..KernelOomKill::default()
    };
    let late = KernelOomKill { anonymous: 300 * MIB, ..kill.clone() };
    run.kernel_kill(1.6, kill).kernel_kill(1.8, late);
    run.ended(1.5, TRAINER, Ending::Signaled(9)).finish(2.0, Ending::Exited(1));
    let verdict = run.verdict();
    assert_eq!(causes(&verdict), ["numa-membind-oom"]);
    let text = sentences(&verdict.findings[0]);
    assert!(text.contains("(300 MiB anonymous") && !text.contains(" 2 "), "{text}");
}

/// The trainer is ended by a signal with so much memory available, on a machine with these daemons.
fn signalled(signal: i32, available: u64, daemons: &[&str]) -> Verdict {
    let mut run = Run::with_trainer();
    run.facts.machine.memory_daemons =
        Measured::Known(daemons.iter().map(|name| (*name).to_owned()).collect());
    let both = || vec![reading(MAIN, 1, "python"), reading(TRAINER, MAIN, "python")];
    for at in [1.0, 2.0] {
        run.tick(at, both(), |sample| {
            sample.host.memory = Measured::Known(host(available, 8 * GIB));
            sample.cgroups = vec![group("/job", GIB, 0, 0, 0)];
        });
    }
    run.ended(2.4, TRAINER, Ending::Signaled(signal));
    run.tick(3.0, vec![reading(MAIN, 1, "python")], |sample| {
        sample.cgroups = vec![group("/job", MIB, 0, 0, 0)];
    });
    run.finish(3.2, Ending::Exited(1));
    run.verdict()
}

#[test]
fn a_daemon_is_reported_only_where_one_runs_and_memory_is_short() {
    let verdict = signalled(9, 3 * GIB, &["earlyoom"]);
    assert_eq!(causes(&verdict), ["userspace-oom-daemon"]);
    assert_eq!(verdict.findings[0].status(), Status::Supported);
    assert_eq!(causes(&signalled(15, 3 * GIB, &["systemd-oomd"])), ["userspace-oom-daemon"]);
    assert!(causes(&signalled(9, 3 * GIB, &[])).is_empty(), "nobody who would");
    assert!(causes(&signalled(9, 40 * GIB, &["earlyoom"])).is_empty(), "no reason to");
    assert!(causes(&signalled(11, 3 * GIB, &["earlyoom"])).is_empty(), "a wrong address");
}

#[test]
fn ray_says_so_itself() {
    let mut run = Run::with_trainer();
    run.quiet(1.0);
    let text = "Task was killed due to the node running low on memory.";
    run.exception(2.0, MAIN, raised("OutOfMemoryError", text)).finish(2.1, Ending::Exited(1));
    assert_eq!(causes(&run.verdict()), ["userspace-oom-daemon"]);
}

/// Eight forked workers that map the same 100 MiB, under Slurm with such a request; one is ended by a signal.
fn under_slurm(request_mib: &str, signal: i32) -> Verdict {
    let mut run = Run::new();
    run.facts.environment.insert("SLURM_MEM_PER_NODE".into(), request_mib.into());
    let mut processes = vec![reading(MAIN, 1, "python")];
    for pid in 300..308 {
        run.process(0.2, pid, MAIN, Role::PoolWorker, limits(), 1000);
        let mut worker = reading(pid, MAIN, "python");
        if let Measured::Known(memory) = &mut worker.memory {
            (memory.anonymous, memory.file, memory.shared) = (Bytes(2 * MIB), Bytes(0), Bytes(100 * MIB));
        }
        processes.push(worker);
    }
    for at in [1.0, 2.0] {
        run.tick(at, processes.clone(), |sample| {
            // Each page once, as the cgroup counts.
            sample.cgroups = vec![holds([216, 0, 100, 5], hits(0))];
        });
    }
    run.finish(2.5, Ending::Signaled(signal));
    run.verdict()
}

#[test]
fn a_sum_of_resident_sizes_is_what_a_scheduler_counts() {
    let verdict = under_slurm("800", 9);
    assert_eq!(causes(&verdict), ["slurm-rss-sum-overcount"]);
    assert_eq!(verdict.findings[0].status(), Status::Hypothesis);
    assert!(causes(&under_slurm("4000", 9)).is_empty(), "asked for more than the sum");
    assert!(causes(&under_slurm("0", 9)).is_empty(), "the whole node");
    assert!(causes(&under_slurm("800", 2)).is_empty(), "Ctrl-C");
}

/// So many loader workers at once on a machine of 64 cores; affinity and quota allow these.
fn workers(count: i32, affinity: u32, quota: Measured<Limit>, dies: bool) -> Verdict {
    let mut run = Run::new();
    run.facts.machine.cores = 64;
    run.facts.machine.cpu_quota = quota;
    for item in &mut run.items {
        if let ullage_model::Item::Event(event) = item {
            if let ullage_model::EventKind::ProcessSeen { facts } = &mut event.what {
                facts.cores_allowed = Measured::Known(affinity);
            }
        }
    }
    let mut processes = vec![reading(MAIN, 1, "python")];
    for pid in 300..300 + count {
        run.process(0.2, pid, MAIN, Role::LoaderWorker(None), limits(), 1000);
        processes.push(reading(pid, MAIN, "pt_data_worker"));
    }
    run.tick(1.0, processes.clone(), |sample| sample.cgroups = vec![holds([900, 0, 0, 5], kills(0))]);
    run.tick(2.0, processes, |sample| sample.cgroups = vec![holds([900, 0, 0, 5], kills(0))]);
    if dies {
        run.ended(2.5, MAIN, Ending::Signaled(9));
        run.tick(3.0, vec![], |sample| sample.cgroups = vec![holds([0, 0, 0, 5], kills(1))]);
    }
    run.finish(3.1, if dies { Ending::Signaled(9) } else { Ending::Exited(0) });
    run.verdict()
}

#[test]
fn workers_for_the_machines_cores_are_reported_where_few_of_them_may_be_used() {
    let quota = Measured::Known(Limit::At(8000));
    let verdict = workers(64, 64, quota, false);
    assert_eq!(notes(&verdict), ["cgroup-sizing-by-host-view"]);
    assert!(sentences(&verdict.findings[0]).contains("8.0 cores (its cgroup's quota)"));
    assert_eq!(notes(&workers(64, 8, Measured::default(), false)), ["cgroup-sizing-by-host-view"]);
    assert_eq!(causes(&workers(64, 64, quota, true)), ["memcg-oom-kill", "cgroup-sizing-by-host-view"]);
    assert!(workers(8, 64, quota, false).findings.is_empty(), "as many as allowed");
    assert!(workers(64, 64, Measured::default(), false).findings.is_empty(), "all of them allowed");
}

#[test]
fn memory_refused_far_below_the_limit_is_the_old_kernels() {
    let run = |kernel: &str, used: u64| {
        let mut run = Run::new();
        run.facts.machine.kernel = kernel.into();
        tick(&mut run, 1.0, holds([used, 0, 0, 5], hits(0)));
        let mut report = raised("OSError", "[Errno 12] Cannot allocate memory");
        report.errno = Some(12);
        run.exception(2.0, MAIN, report).finish(2.1, Ending::Exited(1));
        run.verdict()
    };
    assert_eq!(causes(&run("3.10.0-957.el7.x86_64", 50)), ["kmem-v1-bug-old-kernel"]);
    assert!(causes(&run("3.10.0-957.el7.x86_64", 1000)).is_empty());
    assert!(causes(&run("5.14.0-70.el9.x86_64", 50)).is_empty());
}

#[test]
fn a_group_of_v1_has_no_line_to_be_slowed_at() {
    let mut run = Run::new();
    let mut reading = holds([510, 0, 0, 5], hits(0));
    reading.version = CgroupVersion::V1;
    tick(&mut run, 1.0, reading);
    run.finish(2.0, Ending::Exited(0));
    assert!(run.verdict().findings.is_empty());
}
