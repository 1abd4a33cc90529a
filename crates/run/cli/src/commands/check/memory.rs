//! How much memory may a job take before somebody is killed? The cgroups that this program is in, with every
//! ancestor, the machine, and what the kernel promises.

use super::checked::Check;
use ullage_kernel::cgroup::CgroupMounts;
use ullage_kernel::process::cgroup::parse_cgroup;
use ullage_kernel::{KernelRoot, ProcessDir};
use ullage_model::cgroup::{CgroupMemory, CgroupPids};
use ullage_model::{Bytes, CgroupReading, HostReading, Limit, MachineFacts};
use ullage_report::format;
use ullage_report::text::CheckState;

/// A main program with torch and some spawned workers, each of which imports it again.
const JOB: u64 = 4 << 30;
/// `import torch` makes 400 to 500 MiB resident, a part of it in files that can be dropped.
const IMPORT: u64 = 256 << 20;
/// Threads of a main program and a few workers on a machine of many cores.
const TASKS: u64 = 1024;
/// Torch imported in a main program and one worker, with two threads each, and the helpers.
const FEW_TASKS: u64 = 16;

pub(super) fn overcommit(machine: &MachineFacts, host: &HostReading) -> Check {
    const NAME: &str = "vm.overcommit_memory";
    let Some(mode) = machine.overcommit_memory.known() else {
        return Check::unknown(NAME, format::measured(&machine.overcommit_memory, ToString::to_string));
    };
    if mode != 2 {
        return Check::fine(NAME, mode.to_string());
    }
    let promised = match host.memory.as_known() {
        Some(memory) => {
            let (used, limit) = (memory.committed.0, memory.commit_limit.0);
            let value = format!("2 (strict), {} promised of {}", format::bytes(used), format::bytes(limit));
            Check::fine(NAME, value).figures(Some(used), Limit::At(limit), "bytes")
        }
        None => Check::fine(NAME, "2 (strict)".into()),
    };
    promised.careful(
        "Large reservations and fork() fail while memory is free.",
        "sysctl -w vm.overcommit_memory=0",
    )
}

pub(super) fn of_host(host: &HostReading) -> Check {
    const NAME: &str = "memory";
    let Some(memory) = host.memory.as_known() else {
        return Check::unknown(NAME, format::measured(&host.memory, |_| String::new()));
    };
    let swap = match memory.swap_total.0 {
        0 => "no swap".into(),
        total => format!("{} of {} swap free", format::bytes(memory.swap_free.0), format::bytes(total)),
    };
    let (available, total) = (memory.available.0, memory.total.0);
    let value = format!("{} available of {}, {swap}", format::bytes(available), format::bytes(total));
    let check =
        Check::fine(NAME, value).figures(Some(total.saturating_sub(available)), Limit::At(total), "bytes");
    if available >= JOB {
        return check;
    }
    check.careful(
        "When it runs out, the kernel kills a process, or swap slows the job down. To see what uses it:",
        "ps -eo pid,user,rss,comm --sort=-rss | head",
    )
}

pub(super) fn groups(
    root: &KernelRoot,
    own: &ProcessDir,
    machine: &MachineFacts,
    buffer: &mut Vec<u8>,
) -> Vec<Check> {
    let mounts = CgroupMounts::find(root, buffer);
    if let Err(error) = own.cgroup(buffer) {
        return vec![Check::unknown("cgroup memory", error.to_string())];
    }
    let memberships = parse_cgroup(buffer);
    let keys = mounts.groups(&memberships);
    let mut checks: Vec<Check> =
        keys.iter().flat_map(|key| group(&mounts.read(root, key, buffer), machine)).collect();
    if let Some(hidden) = mounts.memory_out_of_sight(&memberships) {
        let why = format!("the cgroup {hidden} is outside the mounts here, so its limit is unknown");
        checks.push(Check::unknown("cgroup memory", why));
    }
    checks
}

fn group(group: &CgroupReading, machine: &MachineFacts) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(memory) = group.memory.as_known() {
        checks.extend(of_memory(memory, &group.path, machine));
        checks.extend(throttled(memory, &group.path));
    }
    checks.extend(group.pids.as_known().and_then(|pids| of_tasks(pids, &group.path)));
    checks
}

fn of_memory(memory: &CgroupMemory, path: &str, machine: &MachineFacts) -> Option<Check> {
    let limit = memory.limit.at()?;
    let used = memory.in_use().0;
    let value = format!("{} used of {} in {path}", format::bytes(used), format::bytes(limit));
    let check = Check::fine("cgroup memory", value).figures(Some(used), memory.limit, "bytes");
    let left = limit.saturating_sub(used);
    let machine = machine.memory_total.known().map_or(0, |Bytes(total)| total);
    // SIGTERM in time, for a checkpoint, instead of SIGKILL.
    let budget = format!("ullage run --memory-max {}M -- COMMAND", (left >> 20) * 95 / 100);
    let raise = "More: Docker --memory, Kubernetes resources.limits.memory, Slurm --mem, systemd MemoryMax=.";
    Some(if left < IMPORT {
        check.judged(CheckState::Bad, format!("importing torch alone takes about that much. {raise}"), "")
    } else if left < JOB {
        check.careful(
            format!("The kernel kills a process of the job at the limit. Files in /dev/shm count. {raise} To stop in time for a checkpoint instead:"),
            budget,
        )
    } else if limit < machine / 2 {
        check.careful(
            format!(
                "Programs see {} of memory, but the kernel kills a process of the job at the limit. {raise} To stop in time for a checkpoint instead:",
                format::bytes(machine)
            ),
            budget,
        )
    } else {
        check
    })
}

fn throttled(memory: &CgroupMemory, path: &str) -> Option<Check> {
    let high = memory.high.at()?;
    let used = memory.in_use().0;
    let value = format!("{} used of {} in {path}", format::bytes(used), format::bytes(high));
    let check = Check::fine("cgroup memory.high", value).figures(Some(used), memory.high, "bytes");
    Some(check.careful(
        "Above it the kernel slows the job down; nothing fails.",
        format!("echo max > /sys/fs/cgroup{}/memory.high", path.trim_end_matches('/')),
    ))
}

fn of_tasks(pids: &CgroupPids, path: &str) -> Option<Check> {
    let limit = pids.limit.at()?;
    let value = format!("{} used of {} in {path}", format::count(pids.current), format::count(limit));
    let check = Check::fine("cgroup pids", value).figures(Some(pids.current), pids.limit, "tasks");
    let meaning = "Every thread counts. Docker: --pids-limit=-1; systemd: TasksMax=infinity; Kubernetes: podPidsLimit. Fewer threads:";
    let fix = "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1";
    Some(match limit.saturating_sub(pids.current) {
        left if left < FEW_TASKS => check.judged(CheckState::Bad, meaning, fix),
        left if left < TASKS => check.careful(meaning, fix),
        _ => check,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::Measured;

    fn state(used_mib: u64, limit: Limit, machine_gib: u64) -> Option<CheckState> {
        let memory = CgroupMemory {
            current: Bytes(used_mib << 20),
            limit,
            high: Limit::Unlimited,
            peak: Measured::default(),
            swap: Measured::default(),
            swap_limit: Measured::default(),
            oom_kills: Measured::default(),
            oom_kills_subtree: Measured::default(),
            limit_hits: Measured::default(),
            high_hits: Measured::default(),
            anonymous_huge: Measured::default(),
            oom_group: Measured::default(),
            parts: Measured::default(),
        };
        let machine = MachineFacts {
            memory_total: Measured::Known(Bytes(machine_gib << 30)),
            ..MachineFacts::default()
        };
        of_memory(&memory, "/job", &machine).map(|check| check.row.state)
    }

    #[test]
    fn what_is_left_counts_and_what_the_machine_seems_to_have() {
        let gib = |n: u64| Limit::At(n << 30);
        assert_eq!(state(100, gib(60), 64), Some(CheckState::Fine));
        assert_eq!(state(58 << 10, gib(60), 64), Some(CheckState::Warning), "2 GiB left");
        assert_eq!(state(100, gib(16), 64), Some(CheckState::Warning), "a quarter of the machine");
        assert_eq!(state(100, Limit::At(300 << 20), 64), Some(CheckState::Bad));
        assert_eq!(state(100, Limit::Unlimited, 64), None);
    }
}
