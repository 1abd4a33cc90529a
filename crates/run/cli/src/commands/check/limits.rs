//! What may one process have of each kind, and one user? `vm.max_map_count` and the limits that a job started from
//! here would inherit, from /proc/self/limits.

use super::checked::Check;
use ullage_kernel::process::limits::parse_all_limits;
use ullage_kernel::{KernelRoot, ProcessDir};
use ullage_model::{Limit, MachineFacts};
use ullage_report::format;
use ullage_report::text::CheckState;

/// What databases ask their hosts for; below it torch is usually the first to meet the limit.
const MAPPINGS: u64 = 262_144;
/// A dataset of a few thousand tensors, or as many batches kept, is usual.
const FILES: u64 = 4096;
/// `import torch` maps 3.1 GiB (2.6 and 2.13, the builds with CUDA, on a machine without a GPU).
const IMPORT: u64 = 1 << 30;
/// The kernel's default since 5.16.
const LOCKED: u64 = 8 << 20;
/// A machine of 64 cores: a main program and fifteen workers with a thread for each core.
const TASKS: u64 = 1024;

pub(super) fn map_count(machine: &MachineFacts) -> Check {
    const NAME: &str = "vm.max_map_count";
    let Some(limit) = machine.max_map_count.known() else {
        return Check::unknown(NAME, format::measured(&machine.max_map_count, |n| format::count(*n)));
    };
    let check = Check::fine(NAME, format!("{} mappings per process", format::count(limit)));
    let check = check.figures(None, Limit::At(limit), "mappings");
    if limit >= MAPPINGS {
        return check;
    }
    check.careful(
        "torch maps each shared tensor separately. A dataset with that many tensors cannot be sent to spawn or forkserver workers. Use --fix, or store the samples in one tensor plus offsets.",
        "sysctl -w vm.max_map_count=1048576",
    )
}

pub(super) fn of_process(root: &KernelRoot, own: &ProcessDir, buffer: &mut Vec<u8>) -> Vec<Check> {
    let all = own.read("limits", buffer).map_err(|error| error.to_string());
    let all = match all.and_then(|()| parse_all_limits(buffer).map_err(|error| error.to_string())) {
        Ok(all) => all,
        Err(error) => return vec![Check::unknown("ulimit", error)],
    };
    let of = |name: &str| all.iter().find(|one| one.0 == name).map(|one| Own { soft: one.1, hard: one.2 });
    let checks = [
        of("nofile").map(open_files),
        of("as").map(address_space),
        of("nproc").map(|limit| processes(limit, root, own, buffer)),
        of("memlock").map(locked),
    ];
    checks.into_iter().flatten().collect()
}

#[derive(Clone, Copy)]
struct Own {
    soft: Limit,
    hard: Limit,
}

impl Own {
    fn value(self, unit: &str) -> String {
        let (soft, hard) = (format::limit(self.soft, unit), format::limit(self.hard, unit));
        if soft == hard {
            soft
        } else {
            format!("{soft} soft, {hard} hard")
        }
    }

    /// Anybody may raise the soft limit up to the hard one, which does where that is `enough`; only root raises that one.
    fn raise(self, flag: char, name: &str, enough: Limit, wanted: &str) -> String {
        if self.hard.tighter(enough) == enough {
            return format!("ulimit -{flag} $(ulimit -H{flag})");
        }
        format!("prlimit --pid $$ --{name}={wanted}:{wanted}")
    }
}

fn open_files(limit: Own) -> Check {
    let check = Check::fine("ulimit -n", limit.value("")).figures(None, limit.soft, "descriptors");
    match limit.soft.at() {
        Some(soft) if soft < FILES => check.careful(
            "torch keeps one descriptor open per shared tensor. If the hard limit is low: Docker --ulimit nofile=1048576, systemd LimitNOFILE=.",
            limit.raise('n', "nofile", Limit::At(FILES), "65536"),
        ),
        _ => check,
    }
}

fn address_space(limit: Own) -> Check {
    let check = Check::fine("ulimit -v", limit.value("bytes")).figures(None, limit.soft, "bytes");
    let fix = limit.raise('v', "as", Limit::Unlimited, "unlimited");
    match limit.soft.at() {
        Some(soft) if soft < IMPORT => {
            check.judged(CheckState::Bad, "Address space is not memory: importing torch alone maps about 3 GiB of it.", fix)
        }
        Some(_) => check.careful(
            "Address space is not memory: importing torch maps several GiB of it, and each thread and each shared tensor more.",
            fix,
        ),
        None => check,
    }
}

fn processes(limit: Own, root: &KernelRoot, own: &ProcessDir, buffer: &mut Vec<u8>) -> Check {
    const NAME: &str = "ulimit -u";
    let uid = own.status(buffer).ok().and_then(|status| status.uid);
    let tasks = uid.and_then(|uid| tasks_of(uid, root, buffer));
    let value = limit.value("");
    let value = match tasks {
        Some(tasks) if uid != Some(0) => format!("{} tasks of this user, of {value}", format::count(tasks)),
        _ => format!("{value} tasks"),
    };
    let check = Check::fine(NAME, value).figures(tasks, limit.soft, "tasks");
    let fix = limit.raise('u', "nproc", Limit::Unlimited, "unlimited");
    match limit.soft.headroom(tasks.unwrap_or(0)) {
        Some(left) if left < TASKS && uid == Some(0) => {
            check.careful("root is exempt. If the job changes its user, every thread counts.", fix)
        }
        Some(left) if left < TASKS => check.careful(
            "Every thread of the user counts, on the whole machine. Fewer threads: OMP_NUM_THREADS=1. systemd: LimitNPROC=.",
            fix,
        ),
        _ => check,
    }
}

/// Threads of a user, as far as they can be seen.
fn tasks_of(uid: u32, root: &KernelRoot, buffer: &mut Vec<u8>) -> Option<u64> {
    let mut pids = Vec::new();
    root.pids(&mut pids).ok()?;
    let threads = |pid: i32| {
        let process = root.process(pid).ok()?;
        (process.status(buffer).ok()?.uid == Some(uid)).then_some(())?;
        Some(u64::from(process.stat(buffer).ok()?.threads))
    };
    Some(pids.into_iter().map(|(pid, _)| pid).filter_map(threads).sum())
}

fn locked(limit: Own) -> Check {
    let check = Check::fine("ulimit -l", limit.value("bytes")).figures(None, limit.soft, "bytes");
    match limit.soft.at() {
        Some(soft) if soft < LOCKED => check.careful(
            "InfiniBand and RoCE (NCCL, UCX, libfabric) and io_uring lock memory; nothing else in torch does. Docker --ulimit memlock=-1, systemd LimitMEMLOCK=infinity.",
            limit.raise('l', "memlock", Limit::Unlimited, "unlimited"),
        ),
        _ => check,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_limit_is_raised_by_anybody_and_a_hard_one_by_root() {
        let own = |soft, hard| Own { soft: Limit::At(soft), hard };
        let fix = |limit: Own| open_files(limit).row.fix;
        assert_eq!(fix(own(1024, Limit::At(4096))), "ulimit -n $(ulimit -Hn)");
        assert_eq!(fix(own(1024, Limit::Unlimited)), "ulimit -n $(ulimit -Hn)");
        assert_eq!(fix(own(1024, Limit::At(2048))), "prlimit --pid $$ --nofile=65536:65536");
        assert_eq!(fix(own(4096, Limit::At(4096))), "", "enough");
        let space = address_space(own(2 << 30, Limit::At(2 << 30)));
        assert_eq!(space.row.fix, "prlimit --pid $$ --as=unlimited:unlimited");
        assert_eq!(space.row.state, CheckState::Warning);
        assert_eq!(address_space(own(1 << 29, Limit::Unlimited)).row.state, CheckState::Bad);
    }
}
