//! What real kernels print, read by the parsers, and compared with what the job did itself: `fixtures/hosts`, captured in
//! booted guests and on a machine. The surprise: `truth.json` was written by the job and the case, never from these files.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a panic is how a test fails; the numbers are to be read"
)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use ullage_kernel::cgroup::{v1, v2, CgroupKey, CgroupMounts};
use ullage_kernel::host::kmsg::{parse_kernel_record, KernelRecord, OomJoiner};
use ullage_kernel::process::cgroup::parse_cgroup;
use ullage_kernel::process::pagemap::parse_pagemap;
use ullage_kernel::{cgroup, host, process, KernelRoot};
use ullage_model::{Limit, OomConstraint};

/// A folder of fixtures/hosts.
struct Host {
    name: String,
    folder: PathBuf,
    truth: Value,
}

impl Host {
    fn kernel(&self) -> &str {
        self.name.split('-').next().unwrap()
    }

    fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(path)).unwrap_or_else(|error| panic!("{}/{path}: {error}", self.name))
    }

    fn root(&self) -> KernelRoot {
        KernelRoot::at(&self.folder)
    }

    fn main(&self) -> Option<i32> {
        self.truth["main"].as_i64().map(|pid| pid as i32)
    }
}

fn hosts() -> Vec<Host> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/hosts");
    let mut hosts: Vec<Host> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|folder| Host {
            name: folder.file_name().unwrap().to_str().unwrap().to_owned(),
            truth: serde_json::from_slice(&std::fs::read(folder.join("truth.json")).unwrap()).unwrap(),
            folder,
        })
        .collect();
    hosts.sort_by(|a, b| a.name.cmp(&b.name));
    hosts
}

fn files(folder: &Path, below: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = Path::new(below).join(entry.file_name()).to_str().unwrap().to_owned();
        match entry.file_type().unwrap().is_dir() {
            true => files(folder, &path, found),
            false => found.push(path),
        }
    }
}

/// True where the parser of this file understood it; none where nobody reads it.
fn understood(path: &str, bytes: &[u8]) -> Option<bool> {
    let name = path.rsplit('/').next().unwrap();
    let of_cgroup = path.starts_with("sys/fs/cgroup");
    let parsed = match name {
        "stat" if path == "proc/stat" => host::stat::parse_forks(bytes).is_ok(),
        "stat" => process::stat::parse_stat(bytes).is_ok(),
        "status" => process::status::parse_status(bytes).is_ok_and(|status| status.memory.is_some()),
        "maps" => process::maps::parse_maps(bytes).count > 10,
        "schedstat" => process::schedstat::parse_schedstat(bytes).is_ok(),
        "limits" => process::limits::parse_limits(bytes).is_ok(),
        "cgroup" => !parse_cgroup(bytes).is_empty(),
        "cmdline" => !process::command_line::parse_command_line(bytes).is_empty(),
        "mountinfo" => host::mountinfo::parse_mountinfo(bytes).len() > 3,
        "meminfo" => host::meminfo::parse_meminfo(bytes).is_ok_and(|memory| memory.total.0 > 1 << 28),
        "vmstat" => host::vmstat::parse_vmstat(bytes).oom_kills.is_some(),
        "memory" if path.contains("pressure") => host::pressure::parse_pressure(bytes).is_ok(),
        "file-nr" => host::sysctl::parse_file_nr(bytes).is_ok(),
        "osrelease" => {
            host::machine::parse_kernel_release(std::str::from_utf8(bytes).unwrap().trim()).is_some()
        }
        _ if path.starts_with("proc/sys/") => host::sysctl::parse_number(bytes).is_ok(),
        "memory.stat" if bytes.starts_with(b"anon ") => v2::parse_memory_stat_v2(bytes).is_ok(),
        "memory.stat" => v1::parse_memory_stat_v1(bytes).is_ok(),
        "memory.max" | "memory.high" | "memory.swap.max" => cgroup::parse_limit(bytes).is_ok(),
        "pids.max" | "memory.limit_in_bytes" | "memory.memsw.limit_in_bytes" => {
            cgroup::parse_limit_v1(bytes).is_ok()
        }
        "memory.events" | "memory.events.local" | "memory.oom_control" => {
            v2::parse_event_count(bytes, "oom_kill").is_ok()
        }
        "pids.events" => v2::parse_event_count(bytes, "max").is_ok(),
        "memory.current"
        | "memory.peak"
        | "memory.swap.current"
        | "memory.oom.group"
        | "pids.current"
        | "memory.usage_in_bytes"
        | "memory.max_usage_in_bytes"
        | "memory.failcnt"
        | "memory.kmem.usage_in_bytes"
        | "memory.memsw.usage_in_bytes" => host::sysctl::parse_number(bytes).is_ok(),
        "cgroup.procs" => cgroup::procs::parse_cgroup_procs(bytes).iter().all(|&pid| pid > 0),
        "dmesg" => true,
        _ => {
            let known = [
                "README.md",
                "truth.json",
                "cpu",
                "io",
                "comm",
                "smaps_rollup",
                "pagemap.runs",
                "fd.links",
                "dev-shm.list",
                "shm",
                "mounts",
                "version",
                "memory.pressure",
                "memory.use_hierarchy",
                "cgroup.controllers",
            ];
            assert!(known.contains(&name) || of_cgroup, "a file that nobody knows: {path}");
            return None;
        }
    };
    Some(parsed)
}

#[test]
fn every_file_of_every_kernel_is_understood() {
    let mut counts: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for host in hosts() {
        let mut found = Vec::new();
        files(&host.folder, "", &mut found);
        let (folders, read) = counts.entry(host.kernel().to_owned()).or_default();
        *folders += 1;
        for path in found {
            if let Some(right) = understood(&path, &host.read(&path)) {
                assert!(right, "{}/{path}", host.name);
                *read += 1;
            }
        }
    }
    println!("kernel: (fixtures, files read): {counts:?}");
    for kernel in ["5.10", "6.1", "6.12", "6.18"] {
        let (folders, read) = counts.get(kernel).copied().unwrap_or_default();
        assert!(folders >= 5 && read >= 100, "{kernel}: {folders} fixtures, {read} files read");
    }
}

/// Groups whose limit the case set, as they are found through the mounts of that moment.
#[test]
fn limits_are_those_that_were_set() {
    let mut checked = BTreeMap::<&str, u32>::new();
    for host in hosts() {
        let (root, mut buffer) = (host.root(), Vec::new());
        let mounts = CgroupMounts::find(&root, &mut buffer);
        for controller in ["limits", "pids"] {
            for (path, limit) in host.truth[controller].as_object().into_iter().flatten() {
                let on_v1 = host.name.contains("-v1-");
                let key = CgroupKey { v2: !on_v1, path: path.clone(), memory: true, pids: true };
                let reading = mounts.read(&root, &key, &mut buffer);
                let seen = match controller {
                    "limits" => reading.memory.map(|memory| memory.limit),
                    _ => reading.pids.map(|pids| pids.limit),
                };
                let set = limit.as_u64().map_or(Limit::Unlimited, Limit::At);
                assert_eq!(seen.known(), Some(set), "{}: {path}: {seen:?}", host.name);
                *checked.entry(controller).or_default() += 1;
            }
        }
    }
    println!("{checked:?}");
    assert!(checked["limits"] >= 30 && checked["pids"] >= 10, "{checked:?}");
}

#[test]
fn the_groups_of_a_process_are_its_own_or_said_to_be_out_of_sight() {
    let (mut seen, mut hidden) = (0, 0);
    for host in hosts() {
        let Some(main) = host.main() else { continue };
        let (root, mut buffer) = (host.root(), Vec::new());
        let mounts = CgroupMounts::find(&root, &mut buffer);
        root.process(main).unwrap().cgroup(&mut buffer).unwrap();
        let memberships = parse_cgroup(&buffer);
        let keys = mounts.groups(&memberships);
        let wanted: Vec<&String> =
            host.truth["limits"].as_object().into_iter().flatten().map(|(path, _)| path).collect();
        for path in &wanted {
            let key = keys.iter().find(|key| key.path == **path && key.v2 != host.name.contains("-v1-"));
            assert!(key.is_some_and(|key| key.memory), "{}: {path}: {keys:?}", host.name);
            seen += 1;
        }
        match host.truth["out_of_sight"].as_str() {
            Some(path) => {
                assert_eq!(mounts.memory_out_of_sight(&memberships), Some(path), "{}", host.name);
                // The top of the mount is the machine's: its figures must not be taken for the job's.
                assert!(!keys.iter().any(|key| key.memory && !key.v2), "{}: {keys:?}", host.name);
                hidden += 1;
            }
            None => assert_eq!(mounts.memory_out_of_sight(&memberships), None, "{}", host.name),
        }
    }
    println!("{seen} groups seen, {hidden} jobs out of sight");
    assert!(seen >= 20 && hidden >= 4);
}

#[test]
fn page_cache_is_not_counted_as_use() {
    let mut checked = 0;
    for host in hosts() {
        let (Some(main), Some(held)) = (host.main(), host.truth["held"].as_u64()) else { continue };
        let (root, mut buffer) = (host.root(), Vec::new());
        let mounts = CgroupMounts::find(&root, &mut buffer);
        root.process(main).unwrap().cgroup(&mut buffer).unwrap();
        let own = mounts.groups(&parse_cgroup(&buffer)).into_iter().find(|key| key.memory).unwrap();
        let memory = mounts.read(&root, &own, &mut buffer).memory.known().unwrap();
        let used = memory.in_use().0;
        // The interpreter itself has some 10 MiB.
        assert!((held..held + (24 << 20)).contains(&used), "{}: {used}: {memory:?}", host.name);
        let cached = host.truth["cached"].as_u64().unwrap_or(0);
        assert!(memory.current.0 >= held + cached, "{}: {memory:?}", host.name);
        let idle = memory.parts.known().unwrap().inactive_file.0;
        if cached > 0 && idle < cached / 2 {
            println!("{}: of {cached} bytes of cache only {idle} are inactive", host.name);
        }
        checked += 1;
    }
    assert!(checked >= 5, "{checked}");
}

#[test]
fn what_the_kernel_logged_of_kills_is_read_as_it_happened() {
    let mut kills = 0;
    for host in hosts() {
        let Some(wanted) = host.truth["oom"].as_object() else { continue };
        let (mut joiner, mut found) = (OomJoiner::default(), Vec::new());
        for line in host.read("dmesg").split(|&byte| byte == b'\n') {
            found.extend(parse_kernel_record(line).and_then(|record| joiner.push(record)));
        }
        let kill = found.first().unwrap_or_else(|| panic!("{}: no kill in the log", host.name));
        let constraint = match wanted["constraint"].as_str().unwrap() {
            "host" => OomConstraint::Host,
            _ => OomConstraint::Cgroup,
        };
        assert_eq!(kill.constraint, constraint, "{}: {kill:?}", host.name);
        assert!(kill.anonymous > 10 << 20, "{}: {kill:?}", host.name);
        for (key, seen) in [("oom_cgroup", &kill.oom_cgroup), ("task_cgroup", &kill.task_cgroup)] {
            if let Some(path) = wanted.get(key) {
                assert_eq!(seen.as_deref(), path.as_str(), "{}: {kill:?}", host.name);
            }
        }
        kills += 1;
    }
    for host in hosts() {
        let Some(path) = host.truth["fork_rejected"].as_str() else { continue };
        let rejected = KernelRecord::ForkRejected(path.to_owned());
        let log = host.read("dmesg");
        let mut records = log.split(|&byte| byte == b'\n').filter_map(parse_kernel_record);
        assert!(records.any(|record| record == rejected), "{}", host.name);
        kills += 1;
    }
    println!("{kills} logs");
    assert!(kills >= 12, "{kills}");
}

/// Entries of `pagemap` between two addresses, from the runs of a fixture.
fn entries(runs: &[u8], start: u64, bytes: u64) -> Vec<u8> {
    let mut entries = vec![0u64; (bytes / 4096) as usize];
    for line in std::str::from_utf8(runs).unwrap().lines() {
        let mut fields = line.split(' ').map(|field| u64::from_str_radix(field, 16).unwrap());
        let (at, count, entry) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        for page in 0..count {
            let address = at + page * 4096;
            if (start..start + bytes).contains(&address) {
                entries[((address - start) / 4096) as usize] = entry;
            }
        }
    }
    entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect()
}

/// Pages of files and shared memory that are present.
fn of_files(entries: &[u8]) -> u64 {
    let flags = entries.chunks_exact(8).map(|entry| entry[7] & 0xA0);
    flags.filter(|&flags| flags == 0xA0).count() as u64
}

/// The same in a whole address space.
fn all_of_files(runs: &[u8]) -> u64 {
    let number = |field: &str| u64::from_str_radix(field, 16).unwrap();
    let lines = std::str::from_utf8(runs).unwrap().lines();
    let pages = lines.filter_map(|line| {
        let fields: Vec<u64> = line.split(' ').map(number).collect();
        (fields[2] >> 61 & 0b101 == 0b101).then_some(fields[1])
    });
    pages.sum()
}

/// Anonymous pages, and those that no other process maps.
fn anonymous(entries: &[u8]) -> (u64, u64) {
    let own = parse_pagemap(entries).filter(|page| page.is_anonymous());
    own.fold((0, 0), |(all, alone), page| (all + 1, alone + u64::from(page.is_exclusive())))
}

/// Three processes share 16 MiB: which of their pages no other process maps is known to the page.
#[test]
fn pages_shared_by_forked_processes_are_distinguished_from_own_ones() {
    let (mut checked, mut furthest) = (0, (0, String::new()));
    for host in hosts() {
        let Some(processes) = host.truth["processes"].as_object() else { continue };
        let area = |name: &str| {
            let about = &host.truth["areas"][name];
            (about["start"].as_u64().unwrap(), about["bytes"].as_u64().unwrap())
        };
        for (role, about) in processes {
            let pid = about["pid"].as_u64().unwrap();
            let runs = host.read(&format!("proc/{pid}/pagemap.runs"));
            let pages = |name: &str| {
                let (start, bytes) = area(name);
                anonymous(&entries(&runs, start, bytes))
            };
            let own = about["private_exclusive"].as_u64().unwrap() / 4096;
            assert_eq!(pages("private"), (4096, own), "{}: {role}", host.name);
            // Written before the fork and never after it, in huge pages where the kernel had some.
            assert_eq!(pages("huge"), (2048, 0), "{}: {role}", host.name);
            for (name, about) in host.truth["areas"].as_object().unwrap() {
                let Some(written) = about["written"].as_u64() else { continue };
                let (start, bytes) = area(name);
                let entries = entries(&runs, start, bytes);
                // Not anonymous in the sense of these counts.
                assert_eq!(anonymous(&entries), (0, 0), "{}: {role}: {name}", host.name);
                let resident = of_files(&entries);
                match (role.as_str(), name.as_str()) {
                    ("parent", _) => assert_eq!(resident, written / 4096, "{}: {name}", host.name),
                    // A child has touched 256 pages of it, and the kernel maps up to 15 neighbours with each.
                    (_, "shared-anonymous") => {
                        assert!((256..=286).contains(&resident), "{}: {resident}", host.name);
                    }
                    _ => assert_eq!(resident, 0, "{}: {role}: {name}", host.name),
                }
            }
            let status = host.root().process(pid as i32).unwrap().status(&mut Vec::new()).unwrap();
            let memory = status.memory.unwrap();
            let off = ((memory.shared.0 + memory.file.0) / 4096).abs_diff(all_of_files(&runs));
            // Before 6.2 a thread keeps the pages of up to 64 faults to itself, 16 with each; since then each processor
            // keeps up to 32.
            let most = if ["5.10", "6.1"].contains(&host.kernel()) { 1024 } else { 64 };
            assert!(off <= most, "{}: {role}: {off} pages, {memory:?}", host.name);
            furthest = furthest.max((off, host.name.clone()));
            checked += 1;
        }
        let maps = process::maps::parse_maps(
            &host.read(&format!("proc/{}/maps", host.truth["processes"]["parent"]["pid"])),
        );
        assert_eq!((maps.other_shared, maps.torch_shared), (5, 0), "{}: {maps:?}", host.name);
    }
    println!(
        "{checked} processes; status lags behind pagemap by {} pages at most ({})",
        furthest.0, furthest.1
    );
    assert!(checked >= 12, "{checked}");
}
