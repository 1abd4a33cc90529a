//! `ullage check`: is this machine or container fit for a multi-process PyTorch job? Reads limits as a job
//! started from here would meet them; changes nothing.

use crate::arguments::CheckArguments;
use crate::printer;
use ullage_kernel::KernelRoot;
use ullage_report::text::{self, CheckLevel, CheckRow};
use ullage_report::format;

/// Prints the table; ends with 0 even where something is tight: a check is no test of ullage.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<u8> {
    let rows = rows(&KernelRoot::live());
    if arguments.json {
        let list: Vec<_> = rows
            .iter()
            .map(|row| serde_json::json!({"name": row.name, "level": row.level.word(), "value": row.value, "advice": row.advice}))
            .collect();
        printer::out(&format!("{}\n", serde_json::to_string_pretty(&serde_json::json!({"schema": 1, "checks": list}))?))?;
    } else {
        printer::out(&text::check(&rows, &printer::stdout_style()))?;
    }
    Ok(0)
}

fn row(name: &str, level: CheckLevel, value: String, advice: Option<String>) -> CheckRow {
    CheckRow { name: name.into(), level, value, advice }
}

fn rows(root: &KernelRoot) -> Vec<CheckRow> {
    let machine = ullage_kernel::machine::read(root);
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut rows = Vec::new();

    rows.push(match machine.max_map_count.known() {
        Some(limit) if limit < 262_144 => row(
            "vm.max_map_count",
            CheckLevel::Tight,
            format!("{} mappings a process", format::count(limit)),
            Some(format!(
                "A dataset of more than about {} tensors cannot be sent to spawn or forkserver workers. Keep samples in one tensor plus offsets, or as root: sysctl -w vm.max_map_count=1048576",
                format::count(limit - limit / 100)
            )),
        ),
        Some(limit) => row("vm.max_map_count", CheckLevel::Good, format!("{} mappings a process", format::count(limit)), None),
        None => row("vm.max_map_count", CheckLevel::Unknown, format::measured(&machine.max_map_count, |n| format::count(*n)), None),
    });

    match ullage_kernel::process::limits(root, own) {
        Ok(limits) => {
            let soft = limits.open_files.at();
            let tight = soft.is_some_and(|n| n < 4096);
            rows.push(row(
                "open files (ulimit -n)",
                if tight { CheckLevel::Tight } else { CheckLevel::Good },
                format!("{} soft, {} hard", format::limit(limits.open_files, ""), format::limit(limits.open_files_hard, "")),
                tight.then(|| "torch keeps one descriptor open for each tensor that it shares. Raise the soft limit to the hard one: ulimit -n $(ulimit -Hn)".to_string()),
            ));
            let limited = limits.address_space.at().is_some();
            rows.push(row(
                "address space (ulimit -v)",
                if limited { CheckLevel::Tight } else { CheckLevel::Good },
                format::limit(limits.address_space, "bytes"),
                limited.then(|| "Address space is not memory: importing torch alone maps several GiB. Remove it: ulimit -v unlimited".to_string()),
            ));
        }
        Err(error) => rows.push(row("ulimits", CheckLevel::Unknown, error.to_string(), None)),
    }

    match ullage_kernel::memory::filesystem::shm(root, own) {
        Ok(shm) => {
            let small = shm.size.at().is_some_and(|size| size < 1 << 30);
            rows.push(row(
                "/dev/shm",
                if small { CheckLevel::Tight } else { CheckLevel::Good },
                format!("{} used of {}", format::bytes(shm.used.0), format::limit(shm.size, "bytes")),
                small.then(|| "Batches of DataLoader workers travel through it. docker run --shm-size=16g; Kubernetes: an emptyDir with medium: Memory at /dev/shm; as root: mount -o remount,size=16G /dev/shm".to_string()),
            ));
            let few = shm.inodes.headroom(shm.inodes_used).is_some_and(|left| left < 65_536);
            rows.push(row(
                "/dev/shm inodes",
                if few { CheckLevel::Tight } else { CheckLevel::Good },
                format!("{} used of {}", format::count(shm.inodes_used), format::limit(shm.inodes, "")),
                few.then(|| "Each shared tensor is a file. As root: mount -o remount,nr_inodes=0 /dev/shm".to_string()),
            ));
        }
        Err(error) => rows.push(row("/dev/shm", CheckLevel::Unknown, error.to_string(), Some("torch needs a tmpfs at /dev/shm to share tensors.".into()))),
    }

    let strict = machine.overcommit_memory.known();
    rows.push(match strict {
        Some(2) => row("vm.overcommit_memory", CheckLevel::Tight, "2 (strict)".into(), Some("Large reservations and fork() fail while memory is free. As root: sysctl -w vm.overcommit_memory=0".into())),
        Some(mode) => row("vm.overcommit_memory", CheckLevel::Good, mode.to_string(), None),
        None => row("vm.overcommit_memory", CheckLevel::Unknown, format::measured(&machine.overcommit_memory, ToString::to_string), None),
    });

    for group in ullage_kernel::cgroup::with_ancestors(root, own) {
        if let Some(memory) = group.memory.as_known() {
            if let Some(limit) = memory.limit.at() {
                rows.push(row("cgroup memory", CheckLevel::Good, format!("{} used of {} in {}", format::bytes(memory.current.0), format::bytes(limit), group.path), None));
            }
        }
        if let Some(pids) = group.pids.as_known() {
            if let Some(limit) = pids.limit.at() {
                let tight = limit < 1024;
                rows.push(row(
                    "cgroup pids",
                    if tight { CheckLevel::Tight } else { CheckLevel::Good },
                    format!("{} used of {} in {}", format::count(pids.current), format::count(limit), group.path),
                    tight.then(|| "Every thread counts. docker run --pids-limit=-1, systemd TasksMax=infinity, or fewer threads: export OMP_NUM_THREADS=1".to_string()),
                ));
            }
        }
    }
    rows
}
