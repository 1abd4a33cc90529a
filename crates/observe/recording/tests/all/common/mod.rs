//! Samples, events and runs to write: plausible ones by number, and odd ones from a tape of numbers that proptest
//! can shrink.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use ullage_model::cgroup::{CgroupMemory, CgroupMemoryParts, CgroupPids};
use ullage_model::host::{HostKernel, HostMemory};
use ullage_model::process::{DescriptorKinds, FilesIn};
use ullage_model::*;
use ullage_recording::{Recording, Writer};

pub fn run() -> RunFacts {
    RunFacts {
        format: 1,
        run: RunId("20261121-035512-train-4711".into()),
        command: vec!["python".into(), "train.py".into()],
        started_unix: 1_795_233_312.25,
        main: Some(ProcessId { pid: 4712, start: ClockTicks(9000) }),
        recorder: Some(ProcessId { pid: 4711, start: ClockTicks(8990) }),
        interval_s: 1.0,
        agent: true,
        node: None,
        job: None,
        rank: None,
        environment: BTreeMap::from([("LANG".into(), "C".into())]),
        machine: MachineFacts { kernel: "6.12.0".into(), page_size: 4096, ..MachineFacts::default() },
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

pub fn ended(run: &RunFacts) -> RunFacts {
    RunFacts { outcome: Some(Outcome::from_ending(Ending::Exited(0))), ..run.clone() }
}

/// Tick `n` of a job with so many processes.
pub fn sample(n: u64, processes: u64) -> Sample {
    let process = |k: u64| ProcessReading {
        id: ProcessId { pid: 100 + k as i32, start: ClockTicks(5000 + k) },
        parent: 99,
        state: if k == 1 { ProcessState::Zombie } else { ProcessState::Sleeping },
        comm: format!("worker {k}"),
        threads: 4,
        cpu: ClockTicks(n * (k + 1)),
        minor_faults: n * 17,
        major_faults: 0,
        memory: if k == 1 {
            Measured::Missing(Missing::Vanished)
        } else {
            Measured::Known(ProcessMemory { anonymous: Bytes(n * 4096), ..ProcessMemory::default() })
        },
        descriptors: Measured::Known(Descriptors {
            count: 7 + n,
            kinds: if n.is_multiple_of(3) {
                Measured::Known(DescriptorKinds { torch_shared: n, ..Default::default() })
            } else {
                Measured::Missing(Missing::NotAsked)
            },
        }),
        mappings: if n.is_multiple_of(2) {
            Measured::Known(Mappings { count: 100 + n, ..Mappings::default() })
        } else {
            Measured::Missing(Missing::NotAsked)
        },
        // As the first version of format 1 reads: it had no such column.
        exclusive: Measured::Missing(Missing::NotAsked),
        run_delay_ns: Measured::default(),
    };
    Sample {
        at: At(n * 1_000_000_000),
        processes: (0..processes).map(process).collect(),
        host: HostReading {
            memory: Measured::Known(HostMemory { total: Bytes(1 << 34), ..HostMemory::default() }),
            open_files: Measured::Known((800 + n, 1 << 20)),
            ..HostReading::default()
        },
        filesystems: vec![FilesystemReading {
            used_for: FilesystemUse::Shm,
            path: "/dev/shm".into(),
            device: 23,
            tmpfs: true,
            size: Limit::At(64 << 20),
            used: Bytes(n * 320),
            inodes: Limit::Unlimited,
            inodes_used: n,
        }],
        cgroups: vec![CgroupReading {
            version: CgroupVersion::V2,
            path: "/job".into(),
            memory: Measured::Missing(Missing::KernelTooOld),
            pids: Measured::Known(CgroupPids {
                current: 3,
                limit: Limit::Unlimited,
                refused: Measured::Known(0),
            }),
        }],
        // As the first version of format 1 reads: it had no such table.
        segments: Measured::Missing(Missing::NotAsked),
        survey: vec![],
        forks_since_last: n,
        cost: Cost { cpu_ns: n * 500_000, peak_rss: Bytes(9 << 20) },
    }
}

pub fn event(n: u64) -> Event {
    Event { at: At(n * 1_000_000_000), what: EventKind::NotSeen { text: format!("thing {n}") } }
}

/// Writes ticks `0..ticks`, an event before each third; closes only where asked to.
pub fn write(dir: &Path, ticks: u64, processes: u64, tail_bytes: u64, close: bool) -> Vec<Item> {
    let run = run();
    let mut writer = Writer::create(dir, &run).unwrap().with_tail_bytes(tail_bytes);
    let mut items = Vec::new();
    for n in 0..ticks {
        if n.is_multiple_of(3) {
            writer.event(&event(n));
            items.push(Item::Event(event(n)));
        }
        writer.sample(&sample(n, processes));
        items.push(Item::Sample(Box::new(sample(n, processes))));
    }
    assert!(writer.lost().is_empty());
    if close {
        writer.close(&ended(&run)).unwrap();
    }
    items
}

/// All files of a recording, by name.
pub fn image(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

pub fn samples(items: &[Item]) -> Vec<Sample> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Sample(sample) => Some((**sample).clone()),
            Item::Event(_) => None,
        })
        .collect()
}

pub fn replayed(recording: &Recording) -> Vec<Item> {
    recording.replay().collect()
}

/// A tape of numbers: what is odd about a value is read off it; off its end everything is plain.
pub struct Tape(pub VecDeque<u64>);

impl Tape {
    fn next(&mut self) -> u64 {
        self.0.pop_front().unwrap_or(0)
    }

    fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[(self.next() % values.len() as u64) as usize].clone()
    }

    fn number(&mut self) -> u64 {
        match self.next() % 4 {
            0 => self.next() % 1000,
            1 => self.next(),
            2 => u64::MAX,
            _ => i64::MAX as u64,
        }
    }

    fn bytes(&mut self) -> Bytes {
        Bytes(self.number())
    }

    fn text(&mut self) -> String {
        let odd = [
            "",
            "python",
            "a b\tc",
            "x=y z",
            "日本\u{fffd}",
            "\0\n",
            "absent=vanished",
            "((sd-pam))",
            "other:",
        ];
        self.one_of(&odd).to_owned()
    }

    fn limit(&mut self) -> Limit {
        if self.next() % 2 == 1 {
            Limit::Unlimited
        } else {
            Limit::At(self.number())
        }
    }

    fn measured<T>(&mut self, value: impl FnOnce(&mut Tape) -> T) -> Measured<T> {
        match self.next() % 8 {
            3 => Measured::Missing(Missing::NoPermission),
            4 => Measured::Missing(Missing::KernelTooOld),
            5 => Measured::Missing(Missing::Vanished),
            6 => Measured::Missing(Missing::NotAsked),
            7 => Measured::Missing(Missing::Unreadable),
            _ => Measured::Known(value(self)),
        }
    }

    fn id(&mut self) -> ProcessId {
        ProcessId { pid: self.number() as i32, start: ClockTicks(self.number()) }
    }

    fn process(&mut self) -> ProcessReading {
        use ProcessState::*;
        ProcessReading {
            id: self.id(),
            parent: self.number() as i32,
            state: self.one_of(&[
                Running,
                Sleeping,
                DiskSleep,
                Stopped,
                Zombie,
                Dead,
                Other('W'),
                Other(' '),
            ]),
            comm: self.text(),
            threads: self.number() as u32,
            cpu: ClockTicks(self.number()),
            minor_faults: self.number(),
            major_faults: self.number(),
            memory: self.measured(|t| ProcessMemory {
                peak_virtual: t.bytes(),
                virtual_size: t.bytes(),
                locked: t.bytes(),
                peak_resident: t.bytes(),
                anonymous: t.bytes(),
                file: t.bytes(),
                shared: t.bytes(),
                page_tables: t.bytes(),
                swap: t.bytes(),
            }),
            descriptors: self.measured(|t| Descriptors {
                count: t.number(),
                kinds: t.measured(|t| DescriptorKinds {
                    torch_shared: t.number(),
                    files: t.number(),
                    sockets: t.number(),
                    pipes: t.number(),
                    other: t.number(),
                    most_files: t.next().is_multiple_of(2).then(|| {
                        Box::new(FilesIn {
                            folder: "/w/".to_owned(),
                            count: t.number(),
                            example: "/w/a b".to_owned(),
                        })
                    }),
                }),
            }),
            mappings: self.measured(|t| Mappings {
                count: t.number(),
                torch_shared: t.number(),
                torch_shared_bytes: t.bytes(),
                other_shared: t.number(),
                anonymous: t.number(),
                file: t.number(),
                file_bytes: t.bytes(),
                data_file_bytes: t.bytes(),
                executable_bytes: Measured::Known(t.bytes()),
            }),
            exclusive: self.measured(|t| Exclusive { bytes: t.bytes(), error: t.bytes() }),
            run_delay_ns: if self.next().is_multiple_of(2) {
                Measured::Known(self.number())
            } else {
                Measured::default()
            },
        }
    }

    fn host(&mut self) -> HostReading {
        HostReading {
            memory: self.measured(|t| HostMemory {
                total: t.bytes(),
                free: t.bytes(),
                available: t.bytes(),
                swap_total: t.bytes(),
                swap_free: t.bytes(),
                shared: t.bytes(),
                cached: t.bytes(),
                anonymous: t.bytes(),
                commit_limit: t.bytes(),
                committed: t.bytes(),
            }),
            kernel: self.measured(|t| HostKernel {
                buffers: t.bytes(),
                slab_reclaimable: t.bytes(),
                slab_unreclaimable: t.bytes(),
                tables: t.bytes(),
                hugetlb: t.bytes(),
                hugetlb_free: t.bytes(),
                anonymous_huge: t.bytes(),
            }),
            oom_kills: self.measured(Tape::number),
            swap_in: self.measured(Tape::number),
            swap_out: self.measured(Tape::number),
            memory_stall_full_us: self.measured(Tape::number),
            memory_stall_some_us: self.measured(Tape::number),
            open_files: self.measured(|t| (t.number(), t.number())),
        }
    }

    fn filesystem(&mut self) -> FilesystemReading {
        use FilesystemUse::*;
        FilesystemReading {
            used_for: self.one_of(&[Shm, Temporary, Work]),
            path: self.text(),
            device: self.number(),
            tmpfs: self.next() % 2 == 1,
            size: self.limit(),
            used: self.bytes(),
            inodes: self.limit(),
            inodes_used: self.number(),
        }
    }

    fn cgroup(&mut self) -> CgroupReading {
        CgroupReading {
            version: self.one_of(&[CgroupVersion::V1, CgroupVersion::V2]),
            path: self.text(),
            memory: self.measured(|t| CgroupMemory {
                current: t.bytes(),
                limit: t.limit(),
                high: t.limit(),
                peak: t.measured(Tape::bytes),
                swap: t.measured(Tape::bytes),
                swap_limit: t.measured(Tape::limit),
                oom_kills: t.measured(Tape::number),
                oom_kills_subtree: t.measured(Tape::number),
                limit_hits: t.measured(Tape::number),
                high_hits: t.measured(Tape::number),
                anonymous_huge: t.measured(Tape::bytes),
                oom_group: t.measured(|t| t.next() % 2 == 1),
                parts: t.measured(|t| CgroupMemoryParts {
                    anonymous: t.bytes(),
                    file: t.bytes(),
                    shared: t.bytes(),
                    inactive_file: t.bytes(),
                    kernel: t.bytes(),
                }),
            }),
            pids: self.measured(|t| CgroupPids {
                current: t.number(),
                limit: t.limit(),
                refused: t.measured(Tape::number),
            }),
        }
    }

    fn segment(&mut self) -> Segment {
        Segment {
            kind: SegmentKind::ALL[self.next() as usize % SegmentKind::ALL.len()],
            name: self.text(),
            count: self.number(),
            device: self.number(),
            inode: self.number(),
            size: self.bytes(),
            allocated: self.measured(Tape::bytes),
            at_least: self.next() % 2 == 1,
            deleted: self.next() % 2 == 1,
            before: self.next() % 2 == 1,
            creator: self.measured(|t| Creator {
                maker: if t.next() % 2 == 1 { Maker::Process(t.id()) } else { Maker::Gone(t.next() as i32) },
                by: CreatorSource::ALL[t.next() as usize % CreatorSource::ALL.len()],
            }),
            mappers: self.list(Tape::id),
            openers: self.list(Tape::id),
            outsiders: self.measured(|t| t.next() % 2 == 1),
        }
    }

    fn pages(&mut self) -> Pages {
        let job = self.next().is_multiple_of(2);
        Pages {
            of: (!job).then(|| self.id()),
            kind: self.one_of(&PageKind::ALL),
            bytes: self.bytes(),
            error: self.bytes(),
            exclusive: self.bytes(),
            shared: self.bytes(),
            outside: self.bytes(),
            proportional: self.bytes(),
            beside_shared: self.bytes(),
            beside_own: self.bytes(),
            swapped: self.bytes(),
            unexplained: self.bytes(),
        }
    }

    fn list<T>(&mut self, one: impl Fn(&mut Tape) -> T) -> Vec<T> {
        let length = self.next() % 5;
        (0..length).map(|_| one(self)).collect()
    }

    pub fn sample(&mut self, at: At) -> Sample {
        Sample {
            at,
            processes: self.list(Tape::process),
            host: self.host(),
            filesystems: self.list(Tape::filesystem),
            cgroups: self.list(Tape::cgroup),
            segments: self.measured(|t| t.list(Tape::segment)),
            survey: self.list(Tape::pages),
            forks_since_last: self.number(),
            cost: Cost { cpu_ns: self.number(), peak_rss: self.bytes() },
        }
    }

    pub fn event(&mut self, at: At) -> Event {
        let what = match self.next() % 9 {
            0 => EventKind::NotSeen { text: self.text() },
            1 => EventKind::RoleKnown { id: self.id(), role: Role::LoaderWorker(Some(self.next() as u32)) },
            2 => EventKind::ProcessEnded {
                id: self.id(),
                ending: Ending::NotSeen(Missing::Vanished),
                source: EndingSource::ZombieStat,
            },
            3 => EventKind::KernelOomKill(KernelOomKill { task: self.text(), ..Default::default() }),
            4 => EventKind::Machine { facts: Box::default() },
            5 => EventKind::Agent {
                id: None,
                pid: 7,
                message: AgentMessage::Bye {
                    figures: BTreeMap::from([(self.text(), self.number() as f64 / 3.0)]),
                    retained_by_iterators: None,
                },
            },
            6 => EventKind::Agent {
                id: Some(self.id()),
                pid: -1,
                message: AgentMessage::Exception(Box::new(ExceptionReport {
                    text: self.text(),
                    counts: CountsAtFailure { mappings: Some(self.number()), ..Default::default() },
                    ..Default::default()
                })),
            },
            7 => EventKind::ProcessSeen {
                facts: Box::new(ProcessFacts {
                    id: self.id(),
                    parent: 1,
                    uid: self.measured(|t| t.next() as u32),
                    command_line: self.list(Tape::text),
                    comm: self.text(),
                    limits: self.measured(|t| ResourceLimits {
                        open_files: t.limit(),
                        open_files_hard: t.limit(),
                        address_space: t.limit(),
                        processes: t.limit(),
                        locked_memory: t.limit(),
                        stack: t.limit(),
                        file_size: t.limit(),
                    }),
                    cgroups: self.list(Tape::text),
                    role: Role::Main,
                    seccomp: self.measured(Tape::number),
                    cores_allowed: Measured::Missing(Missing::NotAsked),
                    forked_from: self.next().is_multiple_of(2).then(|| self.id()),
                }),
            },
            _ => EventKind::Finished { survivors: self.list(Tape::id) },
        };
        Event { at, what }
    }

    /// Samples and events, times never falling.
    pub fn items(&mut self) -> Vec<Item> {
        let mut at = 0;
        let count = self.next() % 9;
        (0..count)
            .map(|_| {
                at += self.next() % 3;
                if self.next().is_multiple_of(2) {
                    Item::Sample(Box::new(self.sample(At(at))))
                } else {
                    Item::Event(self.event(At(at)))
                }
            })
            .collect()
    }
}
