//! How large is an hour of a recording, and how much memory and CPU does writing it take?
//!
//! `cargo run --release -p ullage-recording --example footprint -- [PROCESSES] [idle|busy] [DIRECTORY] [HOURS] [copied]`
//! writes a simulated hour, or more, at 1 Hz: processes that sleep; or busy ones, in which every figure moves at random every second, more
//! than a real job's do. The numbers come from a fixed pseudo-random sequence, so that two runs of it can be compared.
//! With `copied` it is also copied into DIRECTORY-copy, as `ullage run --fleet` does, and what that writes is counted.
//! `... -- again RECORDING [DIRECTORY] [-] [copied]` writes what a recording holds once more, as this version would write it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use ullage_model::cgroup::{CgroupMemory, CgroupMemoryParts, CgroupPids};
use ullage_model::host::{HostKernel, HostMemory};
use ullage_model::process::DescriptorKinds;
use ullage_model::*;
use ullage_recording::{Copied, CopyPace, Recording, RecordingCopy, Writer};

const HOUR: u64 = 3600;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |n: usize| arguments.get(n).map(String::as_str);
    let dir = argument(2).map_or_else(|| std::env::temp_dir().join("ullage-footprint"), PathBuf::from);
    let _ = std::fs::remove_dir_all(&dir);
    let copies = argument(4).map(|_| Copies::into(&dir));
    match (argument(0).unwrap_or("64"), argument(1)) {
        ("again", recording) => {
            let recording = Recording::open(recording.unwrap()).unwrap();
            write(&dir, &recording.run, recording.replay(), copies);
        }
        (processes, kind) => {
            let processes: u64 = processes.parse().unwrap();
            let busy = kind == Some("busy");
            let hours: u64 = argument(3).map_or(1, |hours| hours.parse().unwrap());
            println!("{processes} {} processes, {hours} h at 1 Hz", if busy { "busy" } else { "idle" });
            let event = |k| {
                Item::Event(Event { at: At(0), what: EventKind::ProcessSeen { facts: Box::new(facts(k)) } })
            };
            let mut job = Job::new(processes, busy);
            let samples = (0..hours * HOUR).map(|second| Item::Sample(Box::new(job.tick(second))));
            write(&dir, &run(), (0..processes).map(event).chain(samples), copies);
        }
    }
}

fn write(dir: &Path, run: &RunFacts, items: impl Iterator<Item = Item>, mut copies: Option<Copies>) {
    let before = status("VmRSS:");
    let mut writer = Writer::create(dir, run).unwrap();
    let (mut largest_tail, mut cpu, mut longest, mut last) = (0, 0.0, 0.0f64, At(0));
    for item in items {
        let start = cpu_seconds();
        match &item {
            Item::Sample(sample) => {
                writer.sample(sample);
                last = sample.at;
            }
            Item::Event(event) => writer.event(event),
        }
        let took = cpu_seconds() - start;
        (cpu, longest) = (cpu + took, longest.max(took));
        largest_tail = largest_tail.max(size(dir, ".arrows"));
        copies.iter_mut().for_each(|copies| copies.at(last));
    }
    assert!(writer.lost().is_empty());
    let start = cpu_seconds();
    writer.close(run).unwrap();
    let closing = cpu_seconds() - start;

    let bytes = size(dir, "");
    let seconds = last.0 as f64 / 1e9;
    println!("{bytes} bytes on disk, {:.3} MB an hour", bytes as f64 / 1e6 * HOUR as f64 / seconds);
    let mut tables: BTreeMap<String, u64> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let table = name.split(['-', '.']).next().unwrap_or_default().to_owned();
        *tables.entry(table).or_default() += entry.metadata().unwrap().len();
    }
    println!("by table: {tables:?}, in {} files", std::fs::read_dir(dir).unwrap().count());
    println!("largest live tail: {largest_tail} bytes");
    println!(
        "CPU of writing: {cpu:.2} s, {:.3} % of a core; {longest:.2} s at most at once; {closing:.2} s to close",
        cpu / seconds * 100.0
    );
    println!("resident: {before} kB before, {} kB at most", status("VmHWM:"));
    copies.into_iter().for_each(|copies| copies.finish(last));
}

/// The copies of a run on a shared disk, by its simulated clock.
struct Copies {
    copy: RecordingCopy,
    pace: CopyPace,
    begun: Instant,
    next: Duration,
    last: Duration,
    sum: Copied,
    /// How old the copy was before it was brought up to date.
    oldest: Duration,
    most_at_once: u64,
    cpu: f64,
}

impl Copies {
    fn into(dir: &Path) -> Copies {
        let to = PathBuf::from(format!("{}-copy", dir.display()));
        let _ = std::fs::remove_dir_all(&to);
        std::fs::create_dir(&to).unwrap();
        let minute = Duration::from_secs(60);
        Copies {
            copy: RecordingCopy::new(dir, &to),
            pace: CopyPace::new(minute),
            begun: Instant::now(),
            next: minute,
            last: Duration::ZERO,
            sum: Copied::default(),
            oldest: Duration::ZERO,
            most_at_once: 0,
            cpu: 0.0,
        }
    }

    fn at(&mut self, at: At) {
        let now = Duration::from_nanos(at.0);
        if now >= self.next {
            let copied = self.update();
            self.next = now + self.pace.wait_after(copied.bytes, self.begun + now);
            self.oldest = self.oldest.max(now - self.last);
            self.last = now;
        }
    }

    fn update(&mut self) -> Copied {
        let start = cpu_seconds();
        let copied = self.copy.update(&mut || ()).unwrap();
        self.cpu += cpu_seconds() - start;
        self.sum.writes += copied.writes;
        self.sum.bytes += copied.bytes;
        self.most_at_once = self.most_at_once.max(copied.bytes);
        copied
    }

    fn finish(mut self, last: At) {
        let seconds = last.0 as f64 / 1e9;
        let live = self.sum;
        let at_the_end = self.update();
        println!(
            "copied while it ran: {:.3} writes a second, {:.3} MB an hour, {:.3} MB at most at once, {:.0} s old at most, {:.3} % of a core",
            live.writes as f64 / seconds,
            live.bytes as f64 / 1e6 * HOUR as f64 / seconds,
            self.most_at_once as f64 / 1e6,
            self.oldest.as_secs_f64(),
            self.cpu / seconds * 100.0
        );
        println!(
            "copied at the end: {} files, {:.3} MB; in all {:.3} MB an hour",
            at_the_end.writes,
            at_the_end.bytes as f64 / 1e6,
            self.sum.bytes as f64 / 1e6 * HOUR as f64 / seconds
        );
    }
}

struct Job {
    processes: Vec<ProcessReading>,
    busy: bool,
    random: u64,
}

impl Job {
    fn new(processes: u64, busy: bool) -> Job {
        let process = |k: u64| ProcessReading {
            id: ProcessId { pid: 4000 + k as i32, start: ClockTicks(880_000 + 7 * k) },
            parent: 3999,
            state: ProcessState::Sleeping,
            comm: if k == 0 { "python".into() } else { "pt_data_worker".into() },
            threads: 3 + k as u32 % 5,
            cpu: ClockTicks(100 + k),
            minor_faults: 40_000 + 31 * k,
            major_faults: k,
            memory: Measured::Known(ProcessMemory {
                peak_virtual: Bytes(9 << 30),
                virtual_size: Bytes(8 << 30),
                locked: Bytes(0),
                peak_resident: Bytes((300 << 20) + 4096 * k),
                anonymous: Bytes((200 << 20) + 4096 * k),
                file: Bytes(70 << 20),
                shared: Bytes(8192),
                page_tables: Bytes(900 << 10),
                swap: Bytes(0),
            }),
            descriptors: Measured::Known(Descriptors {
                count: 30 + k,
                kinds: Measured::Missing(Missing::NotAsked),
            }),
            mappings: Measured::Missing(Missing::NotAsked),
            exclusive: Measured::Missing(Missing::NotAsked),
            run_delay_ns: Measured::default(),
        };
        Job { processes: (0..processes).map(process).collect(), busy, random: 0x9e37_79b9_7f4a_7c15 }
    }

    /// xorshift64.
    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn work(&mut self, k: usize, second: u64) {
        let (cpu, faults, pages) = (60 + self.random(40), self.random(3000), self.random(4000));
        let (threads, opened, file) = (self.random(4), self.random(6), self.random(50));
        let (running, mapped) = (self.random(4) != 0, self.random(1000));
        let deep = (second + k as u64).is_multiple_of(10);
        let process = &mut self.processes[k];
        process.cpu.0 += cpu;
        process.minor_faults += faults;
        process.threads = 3 + k as u32 % 5 + threads as u32;
        process.state = if running { ProcessState::Running } else { ProcessState::Sleeping };
        if let Measured::Known(memory) = &mut process.memory {
            memory.virtual_size.0 = (8 << 30) + (pages + mapped) * 4096;
            memory.peak_virtual.0 = memory.peak_virtual.0.max(memory.virtual_size.0);
            memory.anonymous.0 = (200 << 20) + pages * 4096;
            memory.file.0 = (70 << 20) + file * 4096;
            memory.shared.0 = 8192 + pages / 3 * 4096;
            memory.peak_resident.0 = memory.peak_resident.0.max(memory.resident().0);
            memory.page_tables.0 = (900 << 10) + pages / 512 * 4096;
        }
        let kinds =
            DescriptorKinds { files: 20 + opened, sockets: 4, pipes: 9, ..DescriptorKinds::default() };
        let kinds = if deep { Measured::Known(kinds) } else { Measured::Missing(Missing::NotAsked) };
        process.descriptors = Measured::Known(Descriptors { count: 33 + opened, kinds });
        let mappings = Mappings {
            count: 900 + mapped,
            torch_shared: mapped / 3,
            torch_shared_bytes: Bytes(mapped / 3 * 4096),
            anonymous: 300 + mapped / 2,
            file: 400,
            file_bytes: Bytes(80 << 20),
            data_file_bytes: Bytes(1 << 20),
            ..Mappings::default()
        };
        process.mappings =
            if deep { Measured::Known(mappings) } else { Measured::Missing(Missing::NotAsked) };
        let exclusive = Exclusive { bytes: Bytes(pages * 4096), error: Bytes(mapped * 4096) };
        process.exclusive =
            if deep { Measured::Known(exclusive) } else { Measured::Missing(Missing::NotAsked) };
    }

    fn tick(&mut self, second: u64) -> Sample {
        for k in 0..self.processes.len() {
            if self.busy {
                self.work(k, second);
            } else if self.random(60) == 0 {
                // An idle process still wakes for a timer now and then.
                self.processes[k].cpu.0 += 1;
                self.processes[k].minor_faults += self.random(2);
            }
        }
        let (host, used) = (self.random(1 << 16) * 4096, self.random(1 << 14) * 4096);
        Sample {
            at: At(second * 1_000_000_000 + self.random(40_000_000)),
            processes: self.processes.clone(),
            host: HostReading {
                memory: Measured::Known(HostMemory {
                    total: Bytes(256 << 30),
                    free: Bytes((90 << 30) + host),
                    available: Bytes((200 << 30) + host),
                    cached: Bytes((80 << 30) - host),
                    anonymous: Bytes((40 << 30) + used),
                    committed: Bytes((90 << 30) + used),
                    commit_limit: Bytes(128 << 30),
                    ..HostMemory::default()
                }),
                kernel: Measured::Known(HostKernel {
                    slab_reclaimable: Bytes((2 << 30) + used / 64),
                    slab_unreclaimable: Bytes((1 << 30) + used / 128),
                    tables: Bytes((300 << 20) + used / 512),
                    ..HostKernel::default()
                }),
                oom_kills: Measured::Known(3),
                swap_in: Measured::Known(0),
                swap_out: Measured::Known(0),
                memory_stall_full_us: Measured::Known(second / 7 * 113),
                memory_stall_some_us: Measured::Known(second / 5 * 211),
                open_files: Measured::Known((9000 + self.random(200), 9_000_000)),
            },
            filesystems: [FilesystemUse::Shm, FilesystemUse::Temporary, FilesystemUse::Work]
                .map(|used_for| FilesystemReading {
                    used_for,
                    path: format!("/{used_for:?}"),
                    device: 60 + used_for as u64,
                    tmpfs: used_for == FilesystemUse::Shm,
                    size: Limit::At(64 << 30),
                    used: Bytes((3 << 30) + used / (1 + used_for as u64)),
                    inodes: Limit::At(1 << 20),
                    inodes_used: 4000 + used / 40_960,
                })
                .into(),
            cgroups: ["/a/b/c", "/a/b", "/a", "/"]
                .map(|path| CgroupReading {
                    version: CgroupVersion::V2,
                    path: path.into(),
                    memory: Measured::Known(cgroup_memory(used)),
                    pids: Measured::Known(CgroupPids {
                        current: 200 + used / 40_960_000,
                        limit: Limit::Unlimited,
                        refused: Measured::Known(0),
                    }),
                })
                .into(),
            segments: Measured::default(),
            survey: Vec::new(),
            forks_since_last: self.random(30),
            cost: Cost { cpu_ns: second * 2_000_000 + self.random(500_000), peak_rss: Bytes(14 << 20) },
        }
    }
}

fn cgroup_memory(used: u64) -> CgroupMemory {
    CgroupMemory {
        current: Bytes((30 << 30) + used),
        limit: Limit::At(64 << 30),
        high: Limit::Unlimited,
        peak: Measured::Known(Bytes(31 << 30)),
        swap: Measured::Known(Bytes(0)),
        swap_limit: Measured::Known(Limit::Unlimited),
        oom_kills: Measured::Known(0),
        oom_kills_subtree: Measured::Known(0),
        limit_hits: Measured::Known(0),
        high_hits: Measured::Known(0),
        anonymous_huge: Measured::Known(Bytes(4 << 30)),
        oom_group: Measured::Known(false),
        parts: Measured::Known(CgroupMemoryParts {
            anonymous: Bytes((20 << 30) + used / 2),
            file: Bytes((9 << 30) + used / 3),
            shared: Bytes(1 << 30),
            inactive_file: Bytes((5 << 30) + used / 5),
            kernel: Bytes(300 << 20),
        }),
    }
}

fn facts(k: u64) -> ProcessFacts {
    ProcessFacts {
        id: ProcessId { pid: 4000 + k as i32, start: ClockTicks(880_000 + 7 * k) },
        parent: 3999,
        uid: Measured::Known(1000),
        command_line: [
            "python",
            "-c",
            "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)",
        ]
        .map(str::to_owned)
        .into(),
        comm: "python".into(),
        limits: Measured::Missing(Missing::NoPermission),
        cgroups: vec!["0::/a/b/c".into()],
        role: Role::LoaderWorker(None),
        seccomp: Measured::default(),
        cores_allowed: Measured::default(),
        forked_from: None,
    }
}

fn run() -> RunFacts {
    RunFacts {
        format: 1,
        run: RunId("footprint".into()),
        command: vec!["footprint".into()],
        started_unix: 0.0,
        main: None,
        recorder: None,
        interval_s: 1.0,
        agent: false,
        node: None,
        job: None,
        rank: None,
        environment: BTreeMap::new(),
        machine: MachineFacts::default(),
        outcome: None,
        duration_s: None,
        cost: None,
        not_seen: Vec::new(),
        memory_max: None,
        node_rank: None,
        attempt: None,
        launcher: None,
        remedies: Vec::new(),
    }
}

fn size(dir: &Path, suffix: &str) -> u64 {
    let files = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let ours = files.filter(|entry| entry.file_name().to_string_lossy().ends_with(suffix));
    ours.map(|entry| entry.metadata().unwrap().len()).sum()
}

/// A figure of /proc/self/status, kB.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// User and system time of this process so far (nanoseconds on the CPU, /proc/self/schedstat).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
