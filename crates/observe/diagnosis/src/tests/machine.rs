//! What the machine holds or does beside the job: swap, hugetlb, memory without owner, WSL2.

use super::build::*;
use ullage_model::host::{HostKernel, HostMemory};
use ullage_model::{
    Bytes, Ending, EventKind, KernelOomKill, Measured, Neighbour, Neighbours, OomConstraint, Severity,
    Status, Verdict,
};

/// Twenty seconds of so many pages a second in and out, faults of the job, MiB of it swapped out, and share of waiting; its
/// anonymous memory and swap grow by this factor.
fn swaps(came: u64, went: u64, faults: u64, swapped: u64, stalled: f64, grows: f64) -> Verdict {
    let mut run = Run::new();
    for second in 0..20u64 {
        let mut main = reading(MAIN, 1, "python");
        main.major_faults = faults * second;
        if let Measured::Known(memory) = &mut main.memory {
            memory.swap = Bytes(swapped * MIB);
            let part = 1.0 + (grows - 1.0) * second as f64 / 19.0;
            memory.anonymous = Bytes((400.0 * part) as u64 * MIB);
        }
        run.tick(second as f64, vec![main], |sample| {
            sample.host.swap_in = Measured::Known(1000 + came * second);
            sample.host.swap_out = Measured::Known(5000 + went * second);
            sample.host.memory_stall_some_us = Measured::Known((stalled * 1e6 * second as f64) as u64);
        });
    }
    run.tick(20.0, vec![], |sample| {
        sample.host.swap_in = Measured::Known(1000 + came * 20);
        sample.host.swap_out = Measured::Known(5000 + went * 20);
        sample.host.memory_stall_some_us = Measured::Known((stalled * 1e6 * 20.0) as u64);
    });
    run.finish(20.0, Ending::Exited(0));
    run.verdict()
}

#[test]
fn pages_that_go_in_and_out_while_the_job_waits_are_thrashing() {
    let verdict = swaps(3000, 3000, 2500, 300, 0.5, 1.0);
    assert_eq!(causes(&verdict), ["swap-thrash"]);
    let first = &verdict.findings[0];
    assert_eq!((first.severity, first.status()), (Severity::Warning, Status::Established));
    assert!(sentences(first).contains("stayed at 700 MiB: no leak"), "{}", sentences(first));
    let leaks = swaps(3000, 3000, 2500, 300, 0.5, 3.0);
    assert!(sentences(&leaks.findings[0]).contains("it grows as well"));
}

#[test]
fn cold_pages_others_pages_and_waits_that_nobody_felt_are_not() {
    assert!(swaps(0, 3000, 2500, 300, 0.5, 1.0).healthy, "they stay out");
    assert!(swaps(3000, 3000, 0, 300, 0.5, 1.0).healthy, "another's faults");
    assert!(swaps(3000, 3000, 2500, 0, 0.5, 1.0).healthy, "nothing of the job is out");
    assert!(swaps(3000, 3000, 2500, 300, 0.001, 1.0).healthy, "nobody waited");
    assert!(swaps(0, 0, 2500, 0, 0.0, 1.0).healthy, "files being read");
}

/// Main is killed by the kernel for the whole machine, or not; with these GiB of hugetlb unused, of 64, and these without
/// an owner.
fn lacks(hugetlb: u64, unowned: u64, killed: bool) -> Verdict {
    let mut run = Run::new();
    run.tick(1.0, vec![reading(MAIN, 1, "python")], |sample| {
        let anonymous = Bytes((58 - hugetlb - unowned) * GIB);
        sample.host.memory =
            Measured::Known(HostMemory { cached: Bytes(4 * GIB), anonymous, ..host(2 * GIB, 0) });
        sample.host.kernel = Measured::Known(HostKernel {
            hugetlb: Bytes(hugetlb * GIB),
            hugetlb_free: Bytes(hugetlb * GIB),
            ..HostKernel::default()
        });
    });
    if killed {
        run.kernel_kill(
            1.6,
            KernelOomKill {
                constraint: OomConstraint::Host,
                pid: MAIN,
                task: "python".into(),
                ..KernelOomKill::default()
            },
        );
    }
    run.finish(1.5, if killed { Ending::Signaled(9) } else { Ending::Exited(0) });
    run.verdict()
}

#[test]
fn hugetlb_pages_are_missed_when_the_machine_runs_out() {
    assert_eq!(causes(&lacks(24, 0, true)), ["hugetlb-reserved", "host-oom-kill"]);
    assert_eq!(causes(&lacks(2, 0, true)), ["host-oom-kill"]);
    let well = lacks(24, 0, false);
    assert!(well.healthy);
    assert_eq!(well.findings[0].cause, "hugetlb-reserved");
    assert!(lacks(4, 0, false).findings.is_empty());
}

#[test]
fn memory_without_an_owner_is_a_note_and_part_of_why_a_machine_runs_out() {
    let well = lacks(0, 20, false);
    assert!(well.healthy);
    assert_eq!(well.findings[0].cause, "unaccounted-kernel-memory");
    assert_eq!(causes(&lacks(0, 20, true)), ["host-oom-kill", "unaccounted-kernel-memory"]);
    assert!(lacks(0, 5, false).findings.is_empty());
}

#[test]
fn under_wsl_the_machine_is_a_virtual_one() {
    for (kernel, found) in [("5.15.167.4-microsoft-standard-WSL2", true), ("6.1.0-18-amd64", false)] {
        let mut run = Run::with_trainer();
        run.facts.machine.kernel = kernel.into();
        run.quiet(1.0);
        let text = "CUDA error in cudaHostAlloc: out of memory";
        run.exception(2.0, TRAINER, raised("RuntimeError", text)).finish(2.1, Ending::Exited(1));
        assert_eq!(causes(&run.verdict()).contains(&"wsl2-vm-limits"), found, "{kernel}");
    }
}

/// A machine of 64 GiB in which 50 are available and then 4, while the job comes to hold so many GiB and others so many
/// more.
fn beside(job: u64, others: u64) -> Verdict {
    let mut run = Run::new();
    for (at, available, own, bytes) in [(2.0, 50, 1, 6), (60.0, 4, job, 6 + others)] {
        let mut main = reading(MAIN, 1, "python");
        if let Measured::Known(memory) = &mut main.memory {
            memory.anonymous = Bytes(own * GIB);
        }
        run.tick(at, vec![main], |sample| {
            sample.host.memory = Measured::Known(host(available * GIB, 0));
        });
        let largest = vec![
            Neighbour { id: id(901), name: "indexer".into(), uid: Some(33), bytes: (bytes - 2) * GIB },
            Neighbour { id: id(902), name: "desktop".into(), uid: None, bytes: 2 * GIB },
        ];
        run.event(at, EventKind::Neighbours(Neighbours { processes: 120, bytes: bytes * GIB, largest }));
    }
    run.finish(61.0, Ending::Exited(0));
    run.verdict()
}

#[test]
fn others_that_take_the_memory_of_the_machine_are_ranked() {
    let verdict = beside(2, 44);
    assert_eq!(causes(&verdict), ["machine-neighbour-load"]);
    let first = &verdict.findings[0];
    assert_eq!((first.severity, first.status()), (Severity::Warning, Status::Established));
    let text = sentences(first);
    assert!(text.contains("fell by 46 GiB to 4 GiB of 64 GiB"), "{text}");
    assert!(text.contains("indexer (pid 901, user 33) held 48 GiB, 44 GiB more than before."), "{text}");
    assert!(text.contains("desktop (pid 902) held 2 GiB, as before."), "{text}");
}

#[test]
fn a_job_that_grows_itself_and_memory_that_nobody_shows_are_not_its_neighbours() {
    assert!(!causes(&beside(30, 16)).contains(&"machine-neighbour-load"));
    let unseen = beside(2, 3);
    assert!(unseen.healthy);
    assert!(undetermined(&unseen).contains(&"machine-neighbour-load"));
}
