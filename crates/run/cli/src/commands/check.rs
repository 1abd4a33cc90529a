//! `ullage check`: is this machine or container fit for a multi-process PyTorch job? Reads limits as a job
//! started from here would meet them; changes nothing.

use crate::arguments::CheckArguments;
use crate::printer;
use ullage_kernel::cgroup::CgroupMounts;
use ullage_kernel::process::cgroup::parse_cgroup;
use ullage_kernel::{KernelRoot, ProcessDir};
use ullage_model::{CgroupReading, FilesystemUse, MachineFacts};
use ullage_report::format;
use ullage_report::text::{self, CheckRow, CheckState};

/// Prints the table; ends with 0 even where something is tight: the check itself went well.
pub fn run(arguments: &CheckArguments) -> anyhow::Result<u8> {
    if arguments.clean {
        return super::clean::run(arguments);
    }
    let rows = rows(&KernelRoot::live());
    if arguments.json {
        let list: Vec<_> = rows
            .iter()
            .map(|row| serde_json::json!({
                "name": row.what, "state": word(row.state), "value": row.value, "meaning": row.meaning, "fix": row.fix,
            }))
            .collect();
        let whole = serde_json::json!({"schema": 1, "checks": list});
        printer::out(&format!("{}\n", serde_json::to_string_pretty(&whole)?))?;
    } else {
        printer::out(&text::check(&rows, &printer::stdout_style()))?;
    }
    Ok(0)
}

fn word(state: CheckState) -> &'static str {
    match state {
        CheckState::Fine => "fine",
        CheckState::Warning => "warning",
        CheckState::Bad => "bad",
        CheckState::Unknown => "unknown",
    }
}

fn fine(what: &str, value: String) -> CheckRow {
    CheckRow { state: CheckState::Fine, what: what.into(), value, meaning: String::new(), fix: String::new() }
}

fn warn(what: &str, value: String, meaning: &str, fix: &str) -> CheckRow {
    CheckRow {
        state: CheckState::Warning,
        what: what.into(),
        value,
        meaning: meaning.into(),
        fix: fix.into(),
    }
}

fn unknown(what: &str, why: String) -> CheckRow {
    CheckRow {
        state: CheckState::Unknown,
        what: what.into(),
        value: why,
        meaning: String::new(),
        fix: String::new(),
    }
}

fn rows(root: &KernelRoot) -> Vec<CheckRow> {
    let machine = root.machine_facts();
    let mut rows = vec![map_count(&machine)];
    let mut buffer = Vec::new();
    match root.process(i32::try_from(std::process::id()).unwrap_or(0)) {
        Ok(own) => {
            rows.extend(ulimits(&own, &mut buffer));
            rows.extend(shm(&own));
            rows.push(overcommit(&machine));
            rows.extend(groups(root, &own, &mut buffer));
        }
        Err(error) => rows.push(unknown("/proc", error.to_string())),
    }
    rows
}

fn map_count(machine: &MachineFacts) -> CheckRow {
    const NAME: &str = "vm.max_map_count";
    match machine.max_map_count.known() {
        // 262,144 is what databases ask their hosts for; below it torch is usually the first to meet the limit.
        Some(limit) if limit < 262_144 => warn(
            NAME,
            format!("{} mappings a process", format::count(limit)),
            "torch maps each shared tensor by itself: a dataset of about that many tensors cannot be sent to spawn or forkserver workers. Keep samples in one tensor plus offsets.",
            "sysctl -w vm.max_map_count=1048576",
        ),
        Some(limit) => fine(NAME, format!("{} mappings a process", format::count(limit))),
        None => unknown(NAME, format::measured(&machine.max_map_count, |n| format::count(*n))),
    }
}

fn ulimits(own: &ProcessDir, buffer: &mut Vec<u8>) -> Vec<CheckRow> {
    let limits = match own.limits(buffer) {
        Ok(limits) => limits,
        Err(error) => return vec![unknown("ulimit", error.to_string())],
    };
    let value = format!(
        "{} soft, {} hard",
        format::limit(limits.open_files, ""),
        format::limit(limits.open_files_hard, "")
    );
    let files = match limits.open_files.at() {
        Some(soft) if soft < 4096 => warn(
            "ulimit -n",
            value,
            "torch keeps one descriptor open for each tensor that it shares.",
            "ulimit -n $(ulimit -Hn)",
        ),
        _ => fine("ulimit -n", value),
    };
    let value = format::limit(limits.address_space, "bytes");
    let space = match limits.address_space.at() {
        Some(_) => warn(
            "ulimit -v",
            value,
            "Address space is not memory: importing torch alone maps several GiB of it.",
            "ulimit -v unlimited",
        ),
        None => fine("ulimit -v", value),
    };
    vec![files, space]
}

fn shm(own: &ProcessDir) -> Vec<CheckRow> {
    let shm = match own.filesystem("/dev/shm", FilesystemUse::Shm) {
        Ok(shm) => shm,
        Err(error) => return vec![unknown("/dev/shm", error.to_string())],
    };
    let value = format!("{} used of {}", format::bytes(shm.used.0), format::limit(shm.size, "bytes"));
    let bytes = match shm.size.at() {
        Some(size) if size < 1 << 30 => warn(
            "/dev/shm",
            value,
            "Batches of DataLoader workers travel through it. Docker: --shm-size=16g; Kubernetes: an emptyDir with medium Memory mounted there.",
            "mount -o remount,size=16G /dev/shm",
        ),
        _ => fine("/dev/shm", value),
    };
    let value = format!("{} used of {}", format::count(shm.inodes_used), format::limit(shm.inodes, ""));
    let inodes = match shm.inodes.headroom(shm.inodes_used) {
        Some(left) if left < 65_536 => warn(
            "/dev/shm inodes",
            value,
            "Each shared tensor is a file.",
            "mount -o remount,nr_inodes=0 /dev/shm",
        ),
        _ => fine("/dev/shm inodes", value),
    };
    vec![bytes, inodes]
}

fn overcommit(machine: &MachineFacts) -> CheckRow {
    const NAME: &str = "vm.overcommit_memory";
    match machine.overcommit_memory.known() {
        Some(2) => warn(
            NAME,
            "2 (strict)".into(),
            "Large reservations and fork() fail while memory is free.",
            "sysctl -w vm.overcommit_memory=0",
        ),
        Some(mode) => fine(NAME, mode.to_string()),
        None => unknown(NAME, format::measured(&machine.overcommit_memory, ToString::to_string)),
    }
}

fn groups(root: &KernelRoot, own: &ProcessDir, buffer: &mut Vec<u8>) -> Vec<CheckRow> {
    let mounts = CgroupMounts::find(root, buffer);
    if let Err(error) = own.cgroup(buffer) {
        return vec![unknown("cgroup memory", error.to_string())];
    }
    let memberships = parse_cgroup(buffer);
    let keys = mounts.groups(&memberships);
    let mut rows: Vec<CheckRow> =
        keys.iter().flat_map(|key| group(&mounts.read(root, key, buffer))).collect();
    if let Some(hidden) = mounts.memory_out_of_sight(&memberships) {
        let why = format!("the group {hidden} lies outside of what is mounted here: its limit is not seen");
        rows.push(unknown("cgroup memory", why));
    }
    rows
}

fn group(group: &CgroupReading) -> Vec<CheckRow> {
    let mut rows = Vec::new();
    if let Some(memory) = group.memory.as_known() {
        if let Some(limit) = memory.limit.at() {
            let used = format::bytes(memory.in_use().0);
            rows.push(fine(
                "cgroup memory",
                format!("{used} used of {} in {}", format::bytes(limit), group.path),
            ));
        }
    }
    if let Some(pids) = group.pids.as_known() {
        if let Some(limit) = pids.limit.at() {
            let value =
                format!("{} used of {} in {}", format::count(pids.current), format::count(limit), group.path);
            rows.push(if limit < 1024 {
                warn(
                    "cgroup pids",
                    value,
                    "Every thread counts. Docker: --pids-limit=-1; systemd: TasksMax=infinity.",
                    "export OMP_NUM_THREADS=1",
                )
            } else {
                fine("cgroup pids", value)
            });
        }
    }
    rows
}
