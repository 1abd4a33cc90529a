//! Verdicts as diagnosis builds them, one for each thing that a report must be able to say.

use ullage_model::{
    At, Bytes, ClockTicks, Creator, CreatorSource, Evidence, EvidenceValue, Finding, Fix, Growth,
    GrowthClass, GrowthLimit, GrowthPart, LeftBehind, Limit, LimitKind, LimitState, Maker, Measured,
    MemorySummary, Missing, Outcome, OutcomeKind, Place, ProcessId, ProcessRef, Proof, Role, RoleMemory,
    RunId, Scope, Segment, SegmentCreator, SegmentKind, SegmentPlace, SegmentSeen, SegmentSummary,
    SegmentTotal, Severity, Undetermined, Unit, Verdict,
};

pub(crate) fn all() -> Vec<(&'static str, Verdict)> {
    vec![
        ("crash_established", crash_established()),
        ("crash_supported", crash_supported()),
        ("healthy", healthy()),
        ("growing", growing()),
        ("killed_sender_unknown", killed()),
        ("memcg_oom_kill", memcg()),
        ("ordinary_exception", ordinary()),
        ("missing_values", missing_values()),
        ("not_started", not_started()),
        ("left_behind", left_behind()),
    ]
}

/// A healthy run that leaves shared memory.
pub(crate) fn left_behind() -> Verdict {
    let worker = ProcessRef {
        id: ProcessId { pid: 4750, start: ClockTicks(123_999) },
        role: Role::LoaderWorker(Some(0)),
        name: "pt_data_worker".into(),
    };
    let by_worker = SegmentCreator::Job { process: worker.clone(), ended: true, by: CreatorSource::Name };
    let segment = Segment {
        kind: SegmentKind::Torch,
        name: "torch_4750_*".into(),
        count: 1200,
        device: 27,
        inode: 9,
        size: Bytes(600 << 20),
        allocated: Measured::Known(Bytes(600 << 20)),
        at_least: false,
        deleted: false,
        before: false,
        creator: Measured::Known(Creator { maker: Maker::Process(worker.id), by: CreatorSource::Name }),
        mappers: vec![worker.id],
        openers: vec![],
        outsiders: Measured::default(),
    };
    let used = SegmentSeen {
        segment: segment.clone(),
        creator: by_worker.clone(),
        orphan: false,
        mappers: vec![worker],
        openers: vec![],
    };
    let unknown = Segment {
        kind: SegmentKind::PosixShm,
        name: "psm_1a2b".into(),
        count: 1,
        allocated: Measured::Missing(Missing::NoPermission),
        creator: Measured::Missing(Missing::Vanished),
        mappers: vec![],
        ..segment
    };
    let left = |segment: Segment, creator| SegmentSeen {
        segment: Segment { mappers: vec![], ..segment },
        creator,
        orphan: true,
        mappers: vec![],
        openers: vec![],
    };
    let total = |count, mib: u64, unmeasured| SegmentTotal { count, bytes: mib << 20, unmeasured };
    let manager = ProcessRef {
        id: ProcessId { pid: 4760, start: ClockTicks(124_100) },
        role: Role::ShmManager,
        name: "torch_shm_manag".into(),
    };
    Verdict {
        segments: Some(SegmentSummary {
            at: At::from_seconds(12.3),
            total: total(1201, 600, 1),
            orphans: total(1, 0, 1),
            others: total(3, 12, 0),
            by_kind: [(SegmentKind::Torch, total(1200, 600, 0)), (SegmentKind::PosixShm, total(1, 0, 1))]
                .into(),
            by_creator: vec![
                (by_worker.clone(), total(1200, 600, 0)),
                (SegmentCreator::Unknown(Missing::Vanished), total(1, 0, 1)),
                (SegmentCreator::Gone { pid: 77, by: CreatorSource::Kernel }, total(1, 0, 0)),
            ],
            largest: vec![used.clone(), left(unknown.clone(), SegmentCreator::Unknown(Missing::Vanished))],
            places: vec![SegmentPlace { path: "/dev/shm".into(), used: 612 << 20, attributed: 612 << 20 }],
            left_behind: Some(LeftBehind {
                total: total(1201, 600, 1),
                largest: vec![
                    left(used.segment, by_worker),
                    left(unknown, SegmentCreator::Unknown(Missing::Vanished)),
                ],
                managed: total(3, 24, 0),
                managers: vec![manager],
            }),
        }),
        ..base()
    }
}

fn evidence(
    what: &str,
    value: f64,
    limit: Option<u64>,
    unit: &'static str,
    source: &'static str,
    sentence: &str,
) -> Evidence {
    let unit = if unit == "bytes" { Unit::Bytes } else { Unit::Of(unit) };
    Evidence {
        what: what.into(),
        value: EvidenceValue::Number(value, unit),
        limit: limit.map(Limit::At),
        source: source.into(),
        at: Some(At::from_seconds(12.3)),
        sentence: sentence.into(),
        said: false,
    }
}

fn quote(text: &str, source: &'static str, sentence: &str) -> Evidence {
    Evidence {
        what: "exception".into(),
        value: EvidenceValue::Text(text.into()),
        limit: None,
        source: source.into(),
        at: Some(At::from_seconds(12.3)),
        sentence: sentence.into(),
        said: sentence.contains(text),
    }
}

fn process(pid: i32, role: Role) -> Scope {
    Scope::Process(ProcessId { pid, start: ClockTicks(88) }, role)
}

fn limit(kind: LimitKind, scope: Scope, used: u64, limit: Limit) -> LimitState {
    LimitState {
        kind,
        scope,
        used: Measured::Known(used),
        limit: Measured::Known(limit),
        slope_per_s: Some(0.0),
        time_left_s: None,
        growing_for_s: None,
        warning: false,
    }
}

fn base() -> Verdict {
    Verdict {
        run: RunId("20261121-035512-python-4711".into()),
        command: vec!["python".into(), "train.py".into()],
        outcome: Outcome { code: Some(0), ..Outcome::of(OutcomeKind::Exit) },
        healthy: true,
        findings: vec![],
        limits: vec![],
        memory: MemorySummary {
            peak_bytes: 812_000_000,
            source: "sum of resident anonymous + shared once".into(),
            unexplained_share: 0.01,
            categories: [("anonymous".to_owned(), 500_000_000), ("shared".to_owned(), 266_153_984)].into(),
            ..MemorySummary::default()
        },
        growth: None,
        first_failure: None,
        segments: None,
        undetermined: vec![],
        not_seen: vec![],
        fixes: vec![],
        cost_cpu_share: Some(0.002),
        cost_peak_rss: Some(11_534_336),
        marks: vec![],
        attempts: vec![],
        duration_s: Some(14.8),
    }
}

pub(crate) fn crash_established() -> Verdict {
    let mut grown = limit(LimitKind::Mappings, process(4742, Role::Trainer), 65_530, Limit::At(65_530));
    grown.slope_per_s = Some(5200.0);
    grown.time_left_s = Some(0.0);
    let mut shm =
        limit(LimitKind::ShmBytes, Scope::Filesystem("/dev/shm".into()), 266_153_984, Limit::At(64 << 30));
    shm.slope_per_s = Some(21_299_200.0);
    shm.time_left_s = Some(3213.0);
    Verdict {
        outcome: Outcome { code: Some(1), ..Outcome::of(OutcomeKind::Exit) },
        healthy: false,
        findings: vec![
            Finding {
                cause: "max-map-count-exhausted".into(),
                title: "The trainer has used up its memory mappings: 65,530 of 65,530, nearly all of them torch's shared tensors.".into(),
                headline: "The trainer had 65,530 mappings as the exception left it; the kernel allows 65,530 (vm.max_map_count)".into(),
                severity: Severity::Fatal,
                proof: Proof::SeenInside,
                process: Some(ProcessRef {
                    id: ProcessId { pid: 4742, start: ClockTicks(123_456) },
                    role: Role::Trainer,
                    name: "python".into(),
                }),
                at: Some(At::from_seconds(12.3)),
                evidence: vec![
                    evidence("mappings", 65_530.0, Some(65_530), "mappings", "/proc/4742/maps", "The trainer had 65,530 mappings as the exception left it; the kernel allows 65,530 (vm.max_map_count)."),
                    evidence("mappings of torch's segments", 64_975.0, None, "mappings", "/proc/4742/maps", "64,975 of them are torch's shared segments, one for each tensor of a few hundred bytes."),
                    quote("RuntimeError: unable to mmap 320 bytes from file </torch_4742_2903847_64976>: Cannot allocate memory (12)", "agent in 4742", "The kernel refused one more mapping."),
                    evidence("/dev/shm bytes", 266_153_984.0, Some(64 << 30), "bytes", "statvfs /dev/shm", "/dev/shm shows 254 MiB because each segment takes a page of 4 KiB; it is not full."),
                    quote("forkserver", "agent in 4742", "The loader's workers were started by forkserver because the parent was, so the dataset was pickled and every tensor moved to shared memory."),
                ],
                fixes: vec![
                    Fix::new(
                        "Start the loader's workers by fork, which copies no tensor",
                        "DataLoader(dataset, num_workers=1, multiprocessing_context=\"fork\")",
                    )
                    .only(Place::Loader),
                    Fix::new(
                        "Keep the samples in one tensor",
                        "data = torch.stack(tensors)      # then return data[i] in __getitem__",
                    ),
                    Fix::new(
                        "Allow more mappings on this machine (as root)",
                        "sysctl -w vm.max_map_count=1048576",
                    ),
                ],
                explains: vec![],
                beyond_its_process: false,
            },
            Finding {
                cause: "orphan-workers".into(),
                title: "A loader worker outlived the trainer".into(),
                headline: "A loader worker outlived the trainer".into(),
                severity: Severity::Warning,
                proof: Proof::Estimated,
                process: Some(ProcessRef { id: ProcessId { pid: 4750, start: ClockTicks(123_999) }, role: Role::LoaderWorker(Some(0)), name: "pt_data_worker".into() }),
                at: Some(At::from_seconds(13.0)),
                evidence: vec![],
                fixes: vec![],
                explains: vec![],
                beyond_its_process: false,
            },
        ],
        limits: vec![
            grown,
            shm,
            limit(LimitKind::Descriptors, process(4742, Role::Trainer), 104, Limit::At(1024)),
            limit(LimitKind::CgroupMemory, Scope::Cgroup("/user.slice/user-1000.slice/session-3.scope/a-long-name".into()), 812_000_000, Limit::At(8 << 30)),
            limit(LimitKind::AddressSpace, process(4742, Role::Trainer), 9 << 30, Limit::Unlimited),
        ],
        not_seen: vec!["The agent reached 3 of 4 Pythons of the job (python -S keeps it out).".into()],
        undetermined: vec![Undetermined { cause: "host-oom-kill".into(), because: "the kernel log may not be read".into() }],
        ..base()
    }
}

pub(crate) fn crash_supported() -> Verdict {
    let mut verdict = crash_established();
    verdict.findings.truncate(1);
    let finding = &mut verdict.findings[0];
    finding.proof = Proof::ReadNearLimit;
    finding.evidence = vec![
        evidence("mappings", 65_102.0, Some(65_530), "mappings", "/proc/4742/maps", "The trainer had 65,102 of 65,530 mappings at the last reading, 0.2 s before it ended, and gained 5,200 a second."),
        evidence("exit status", 1.0, None, "", "wait of its parent", "The trainer ended with exit status 1."),
    ];
    finding.evidence.iter_mut().for_each(|one| one.said = true);
    verdict.not_seen =
        vec!["The agent was switched off (--no-agent): the exception itself was not seen.".into()];
    verdict
}

pub(crate) fn healthy() -> Verdict {
    let mut near = limit(LimitKind::Mappings, process(4711, Role::Main), 1_210, Limit::At(65_530));
    near.slope_per_s = Some(2.0);
    near.time_left_s = Some(32_160.0);
    Verdict {
        limits: vec![near, limit(LimitKind::HostMemory, Scope::Host, 3 << 30, Limit::At(23 << 30))],
        memory: MemorySummary {
            by_role: vec![
                RoleMemory { role: "loader worker".into(), processes: 4, bytes: 220 << 20 },
                RoleMemory { role: "main".into(), processes: 1, bytes: 190 << 20 },
                RoleMemory { role: "resource tracker".into(), processes: 1, bytes: 3 << 20 },
            ],
            ..base().memory
        },
        ..base()
    }
}

/// One limit is about to be met, one grows and is far off, one is still.
pub(crate) fn growing() -> Verdict {
    let mut near = limit(LimitKind::Descriptors, process(4742, Role::Trainer), 812, Limit::At(1_024));
    near.slope_per_s = Some(3.12);
    near.growing_for_s = Some(240.2);
    near.time_left_s = Some(67.5);
    near.warning = true;
    let mut far = limit(LimitKind::CgroupMemory, Scope::Cgroup("/job".into()), 3 << 30, Limit::At(23 << 30));
    far.slope_per_s = Some(700.0);
    far.growing_for_s = Some(300.0);
    let still = limit(LimitKind::Mappings, process(4711, Role::Main), 1_210, Limit::At(65_530));
    let growth = Growth {
        explained_by: None,
        class: GrowthClass::LiveTensors,
        because: "The main (pid 4711) grew by 230 MiB in the last 30.0 s of the run, and did so to its end: tensors that Python still refers to, as the collector's list and malloc say.".into(),
        bytes: 230 << 20,
        per_second: 8e6,
        since: Some(At::from_seconds(12.0)),
        share: 0.92,
        process: Some(ProcessRef {
            id: ProcessId { pid: 4711, start: ClockTicks(88) },
            role: Role::Main,
            name: "python".into(),
        }),
        until: Some(GrowthLimit {
            kind: LimitKind::CgroupMemory,
            scope: Scope::Cgroup("/job".into()),
            time_left_s: Some(90.0),
        }),
        parts: vec![
            GrowthPart { class: GrowthClass::LiveTensors, bytes: 230 << 20, share: 0.92 },
            GrowthPart { class: GrowthClass::FreedButHeld, bytes: 20 << 20, share: 0.08 },
        ],
    };
    Verdict { limits: vec![near, far, still], growth: Some(growth), ..base() }
}

pub(crate) fn killed() -> Verdict {
    Verdict {
        outcome: Outcome::from_ending(ullage_model::Ending::Signaled(9)),
        healthy: false,
        undetermined: vec![Undetermined {
            cause: "host-oom-kill".into(),
            because: "the kernel log may not be read here.".into(),
        }],
        duration_s: Some(245.0),
        ..base()
    }
}

pub(crate) fn memcg() -> Verdict {
    let mut full = limit(LimitKind::CgroupMemory, Scope::Cgroup("/job".into()), 1 << 30, Limit::At(1 << 30));
    full.time_left_s = Some(0.0);
    Verdict {
        outcome: Outcome {
            signal: Some(9),
            by: Some(ullage_model::EndedBy::CgroupLimit),
            ..Outcome::of(OutcomeKind::OomKill)
        },
        healthy: false,
        findings: vec![Finding {
            cause: "memcg-oom-kill".into(),
            title: "The kernel killed the main process at the memory limit of its cgroup: 1 GiB.".into(),
            headline: "The kernel killed the main process at the memory limit of its cgroup: 1 GiB".into(),
            severity: Severity::Fatal,
            proof: Proof::KernelSaid,
            process: None,
            at: Some(At::from_seconds(4.0)),
            evidence: vec![evidence(
                "oom_kill",
                1.0,
                None,
                "kills",
                "/sys/fs/cgroup/job/memory.events",
                "The kernel counted 1 OOM kill in the cgroup while the job ran.",
            )],
            fixes: vec![],
            explains: vec![],
            beyond_its_process: false,
        }],
        limits: vec![full],
        ..base()
    }
}

pub(crate) fn ordinary() -> Verdict {
    Verdict { outcome: Outcome { code: Some(1), ..Outcome::of(OutcomeKind::Exit) }, healthy: false, ..base() }
}

pub(crate) fn missing_values() -> Verdict {
    let mut verdict = crash_established();
    verdict.command = vec!["python".into(), "-c".into(), "print('\u{1b}[31m')".into()];
    verdict.outcome = Outcome::of(OutcomeKind::Unknown);
    verdict.findings.truncate(1);
    let finding = &mut verdict.findings[0];
    finding.proof = Proof::Consistent;
    finding.evidence[0].value = EvidenceValue::Missing(Missing::NoPermission, Unit::Of("mappings"));
    finding.evidence[0].sentence = String::new();
    finding.evidence[2].value = EvidenceValue::Text("bad\u{1b}[2J text\nsecond line".into());
    finding.evidence.truncate(3);
    verdict.limits[0].used = Measured::Missing(Missing::Vanished);
    verdict.limits[0].time_left_s = None;
    verdict.limits[1].limit = Measured::Missing(Missing::KernelTooOld);
    verdict.limits[1].time_left_s = None;
    verdict.limits[1].slope_per_s = None;
    verdict.memory = MemorySummary::default();
    verdict.cost_cpu_share = None;
    verdict.cost_peak_rss = None;
    verdict.duration_s = None;
    verdict
}

pub(crate) fn not_started() -> Verdict {
    Verdict {
        outcome: Outcome::of(OutcomeKind::NotStarted),
        healthy: false,
        memory: MemorySummary::default(),
        not_seen: vec!["COMMAND was not found: pyhton.".into()],
        ..base()
    }
}
