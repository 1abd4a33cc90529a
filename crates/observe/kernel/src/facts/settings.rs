//! Settings of the kernel: `/proc/sys`, boot options, huge pages, swap, nodes, cores; and limits of a process.
//!
//! ```text
//! /proc/swaps:       Filename Type Size Used Priority\n/dev/zram0 partition 8388604 0 100     (KiB)
//! /proc/PID/status:  Cpus_allowed_list:\t0-1    THP_enabled:\t1    Seccomp:\t2
//! ```

use super::collector::Collector;
use crate::host::machine::parse_core_list;
use crate::host::sysctl::parse_choice;
use crate::process::limits::parse_all_limits;
use crate::scan::{lines, number, words};
use crate::ProcessDir;
use ullage_model::{Bytes, Fact, Missing};

/// Below /proc/sys; what [`ullage_model::MachineFacts`] holds is not read again.
const SYSCTLS: &[&str] = &[
    "fs.aio-max-nr",
    "fs.inotify.max_user_instances",
    "fs.inotify.max_user_watches",
    "fs.mqueue.msg_max",
    "fs.pipe-max-size",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.numa_balancing",
    "kernel.sem",
    "kernel.shm_rmid_forced",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "vm.admin_reserve_kbytes",
    "vm.compaction_proactiveness",
    "vm.dirty_bytes",
    "vm.dirty_ratio",
    "vm.memfd_noexec",
    "vm.min_free_kbytes",
    "vm.nr_hugepages",
    "vm.nr_overcommit_hugepages",
    "vm.oom_kill_allocating_task",
    "vm.overcommit_kbytes",
    "vm.panic_on_oom",
    "vm.swappiness",
    "vm.user_reserve_kbytes",
    "vm.vfs_cache_pressure",
    "vm.watermark_scale_factor",
    "vm.zone_reclaim_mode",
];

/// Options of the boot that change how memory behaves, by the beginning of their names.
const BOOT: &[&str] = &[
    "cgroup",
    "default_hugepagesz",
    "hugepage",
    "init_on_alloc",
    "init_on_free",
    "isolcpus",
    "maxcpus",
    "mem=",
    "memmap",
    "nosmt",
    "nr_cpus",
    "numa",
    "page_owner",
    "psi",
    "swapaccount",
    "systemd.unified_cgroup_hierarchy",
    "thp_",
    "transparent_hugepage",
    "zswap",
    "slub_debug",
    "slab_",
];

pub(super) fn collect(collector: &mut Collector<'_>) {
    for name in SYSCTLS {
        collector.file(format!("sysctl.{name}"), &format!("/proc/sys/{}", name.replace('.', "/")));
    }
    boot_options(collector);
    huge_pages(collector);
    swap(collector);
    let nodes = collector.text("/sys/devices/system/node/online");
    collector.set(
        "numa.nodes",
        nodes.map(|list| parse_core_list(&list).map_or(Fact::Text(list), |n| u64::from(n).into())),
    );
    collector.file("kernel.arch", "/proc/sys/kernel/arch");
    collector.file("gpu.driver", "/sys/module/nvidia/version");
}

fn boot_options(collector: &mut Collector<'_>) {
    let line = match collector.text("/proc/cmdline") {
        ullage_model::Measured::Known(line) => line,
        ullage_model::Measured::Missing(reason) => return collector.set("boot", reason),
    };
    for option in line.split_whitespace().filter(|option| BOOT.iter().any(|known| option.starts_with(known)))
    {
        let (name, value) = option.split_once('=').unwrap_or((option, "given"));
        collector.set(format!("boot.{name}"), value);
    }
}

fn huge_pages(collector: &mut Collector<'_>) {
    const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
    for name in ["defrag", "shmem_enabled"] {
        let choice = collector.root.parsed(format!("{FOLDER}/{name}"), &mut collector.buffer, parse_choice);
        match choice {
            Ok(choice) => collector.set(format!("thp.{name}"), choice),
            Err(error) => collector.set(format!("thp.{name}"), error.missing_feature()),
        }
    }
    for name in ["defrag", "max_ptes_none", "pages_to_scan", "scan_sleep_millisecs"] {
        collector.file(format!("thp.khugepaged.{name}"), &format!("{FOLDER}/khugepaged/{name}"));
    }
}

fn swap(collector: &mut Collector<'_>) {
    match collector.root.read("/proc/swaps", &mut collector.buffer) {
        Ok(()) => {
            let (mut kinds, mut total): (Vec<String>, u64) = (Vec::new(), 0);
            for line in lines(&collector.buffer).skip(1) {
                let mut words = words(line);
                let (Some(name), Some(kind)) = (words.next(), words.next()) else { continue };
                let size = words.next().and_then(number).unwrap_or(0);
                total = total.saturating_add(size);
                let kind = if name.starts_with(b"/dev/zram") { b"zram" } else { kind };
                kinds.push(String::from_utf8_lossy(kind).into_owned());
            }
            kinds.sort();
            collector.set("swap.total", Bytes::from_kib(total));
            collector.set("swap.kinds", if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") });
        }
        Err(error) => {
            let reason = error.missing_feature();
            collector.set("swap.total", reason);
        }
    }
    collector.file("swap.zswap", "/sys/module/zswap/parameters/enabled");
}

/// Limits, cores, huge pages and seccomp of the process, which its children inherit.
pub(super) fn of_process(collector: &mut Collector<'_>, process: &ProcessDir) {
    match process.parsed("limits", &mut collector.buffer, parse_all_limits) {
        Ok(limits) => {
            for (name, soft, hard) in limits {
                collector.set(format!("limit.{name}.soft"), soft);
                collector.set(format!("limit.{name}.hard"), hard);
            }
        }
        Err(error) => collector.set("limits", error.missing()),
    }
    if let Err(error) = process.read("status", &mut collector.buffer) {
        return collector.set("cores.allowed", error.missing());
    }
    let status = String::from_utf8_lossy(&collector.buffer).into_owned();
    let line =
        |key: &str| status.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()));
    let cores = line("Cpus_allowed_list").and_then(parse_core_list).map(u64::from);
    collector.set("cores.allowed", cores.map_or(Fact::from(Missing::Unreadable), Fact::from));
    let nodes = line("Mems_allowed_list").and_then(parse_core_list).map(u64::from);
    collector.set("numa.allowed", nodes.map_or(Fact::from(Missing::KernelTooOld), Fact::from));
    let yes =
        |value: Option<&str>| value.map_or(Fact::from(Missing::KernelTooOld), |value| (value != "0").into());
    collector.set("thp.process", yes(line("THP_enabled")));
    collector.set("seccomp.no_new_privileges", yes(line("NoNewPrivs")));
    let seccomp = line("Seccomp").map(|mode| match mode {
        "0" => "off",
        "1" => "strict",
        _ => "filter",
    });
    collector.set("seccomp.mode", seccomp.map_or(Fact::from(Missing::KernelTooOld), Fact::from));
    // Uid: real, effective, saved, filesystem. Root is exempt from RLIMIT_NPROC.
    let root = line("Uid").and_then(|ids| ids.split_whitespace().nth(1)).map(|id| id == "0");
    collector.set("user.root", root.map_or(Fact::from(Missing::Unreadable), Fact::from));
}
