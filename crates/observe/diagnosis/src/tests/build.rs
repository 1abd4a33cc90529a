//! Small runs, built in order of time: what the tests judge.

use crate::{diagnose, Timeline};
use ullage_model::cgroup::{CgroupMemory, CgroupMemoryParts, CgroupPids};
use ullage_model::host::HostMemory;
use ullage_model::process::{DescriptorKinds, FilesIn};
use ullage_model::{
    figures, AgentMessage, At, Bytes, CgroupReading, CgroupVersion, ClockTicks, Descriptors, Ending,
    EndingSource, Event, EventKind, Evidence, EvidenceValue, ExceptionReport, FilesystemReading,
    FilesystemUse, Finding, Item, KernelOomKill, Limit, LoaderSettings, Mappings, Measured, Missing, Outcome,
    ProcessFacts, ProcessId, ProcessMemory, ProcessReading, ProcessState, ResourceLimits, Role, RunFacts,
    RunId, Sample, Severity, Unit, Verdict,
};

pub(crate) const MAIN: i32 = 100;
pub(crate) const TRAINER: i32 = 200;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

pub(crate) fn id(pid: i32) -> ProcessId {
    ProcessId { pid, start: ClockTicks(pid as u64 * 10) }
}

pub(crate) fn s(seconds: f64) -> At {
    At::from_seconds(seconds)
}

pub(crate) fn limits() -> ResourceLimits {
    ResourceLimits {
        open_files: Limit::At(1024),
        open_files_hard: Limit::At(1_048_576),
        address_space: Limit::Unlimited,
        processes: Limit::Unlimited,
        locked_memory: Limit::At(8 * MIB),
        stack: Limit::At(8 * MIB),
        file_size: Limit::Unlimited,
    }
}

/// A process at one tick.
pub(crate) fn reading(pid: i32, parent: i32, comm: &str) -> ProcessReading {
    ProcessReading {
        id: id(pid),
        parent,
        state: ProcessState::Running,
        comm: comm.into(),
        threads: 4,
        cpu: ClockTicks(0),
        minor_faults: 0,
        major_faults: 0,
        memory: Measured::Known(ProcessMemory {
            peak_virtual: Bytes(3 * GIB),
            virtual_size: Bytes(3 * GIB),
            anonymous: Bytes(200 * MIB),
            file: Bytes(100 * MIB),
            shared: Bytes(MIB),
            ..ProcessMemory::default()
        }),
        descriptors: Measured::Known(Descriptors { count: 12, kinds: Measured::Missing(Missing::NotAsked) }),
        mappings: Measured::Known(Mappings { count: 700, ..Mappings::default() }),
        exclusive: Measured::Missing(Missing::NotAsked),
        run_delay_ns: Measured::default(),
    }
}

pub(crate) fn with_fds(mut reading: ProcessReading, count: u64, torch: u64) -> ProcessReading {
    let files = count - torch;
    let example = format!("/w/runs/run-{files}.log");
    let most_files = Some(Box::new(FilesIn { folder: "/w/runs/".to_owned(), count: files, example }));
    let kinds = DescriptorKinds { torch_shared: torch, files, most_files, ..DescriptorKinds::default() };
    reading.descriptors = Measured::Known(Descriptors { count, kinds: Measured::Known(kinds) });
    reading
}

pub(crate) fn with_maps(mut reading: ProcessReading, count: u64, torch: u64) -> ProcessReading {
    reading.mappings = Measured::Known(Mappings { count, torch_shared: torch, ..Mappings::default() });
    reading
}

pub(crate) fn group(path: &str, current: u64, limit: u64, oom_kills: u64, hits: u64) -> CgroupReading {
    CgroupReading {
        version: CgroupVersion::V2,
        path: path.into(),
        memory: Measured::Known(CgroupMemory {
            current: Bytes(current),
            limit: if limit == 0 { Limit::Unlimited } else { Limit::At(limit) },
            high: Limit::Unlimited,
            peak: Measured::Known(Bytes(current)),
            swap: Measured::default(),
            swap_limit: Measured::default(),
            oom_kills: Measured::Known(oom_kills),
            oom_kills_subtree: Measured::Known(oom_kills),
            limit_hits: Measured::Known(hits),
            high_hits: Measured::default(),
            anonymous_huge: Measured::default(),
            oom_group: Measured::Known(false),
            parts: Measured::Known(CgroupMemoryParts::default()),
        }),
        pids: Measured::Missing(Missing::KernelTooOld),
    }
}

pub(crate) fn pids(path: &str, current: u64, limit: u64, refused: u64) -> CgroupReading {
    CgroupReading {
        version: CgroupVersion::V1,
        path: path.into(),
        memory: Measured::Missing(Missing::KernelTooOld),
        pids: Measured::Known(CgroupPids {
            current,
            limit: Limit::At(limit),
            refused: Measured::Known(refused),
        }),
    }
}

pub(crate) fn shm(used: u64, size: u64, inodes_used: u64, inodes: u64) -> FilesystemReading {
    FilesystemReading {
        used_for: FilesystemUse::Shm,
        path: "/dev/shm".into(),
        device: 5,
        tmpfs: true,
        size: Limit::At(size),
        used: Bytes(used),
        inodes: Limit::At(inodes),
        inodes_used,
    }
}

pub(crate) fn host(available: u64, committed: u64) -> HostMemory {
    HostMemory {
        total: Bytes(64 * GIB),
        free: Bytes(available),
        available: Bytes(available),
        commit_limit: Bytes(32 * GIB),
        committed: Bytes(committed),
        ..HostMemory::default()
    }
}

/// A run in the making.
pub(crate) struct Run {
    pub(crate) facts: RunFacts,
    pub(crate) items: Vec<Item>,
}

impl Run {
    /// Main (not root) that runs on a machine as it comes.
    pub(crate) fn new() -> Run {
        let mut facts = RunFacts {
            format: 1,
            run: RunId("r".into()),
            command: vec!["python".into(), "train.py".into()],
            started_unix: 0.0,
            main: Some(id(MAIN)),
            recorder: None,
            interval_s: 1.0,
            agent: true,
            node: None,
            job: None,
            rank: None,
            environment: Default::default(),
            machine: Default::default(),
            outcome: None,
            duration_s: None,
            cost: None,
            not_seen: vec![],
            memory_max: None,
            node_rank: None,
            attempt: None,
            launcher: None,
            remedies: Vec::new(),
        };
        facts.machine.max_map_count = Measured::Known(65_530);
        facts.machine.overcommit_memory = Measured::Known(0);
        facts.machine.memory_total = Measured::Known(Bytes(64 * GIB));
        let mut run = Run { facts, items: vec![] };
        run.process(0.0, MAIN, 1, Role::Main, limits(), 1000);
        run
    }

    /// With a trainer started by main.
    pub(crate) fn with_trainer() -> Run {
        let mut run = Run::new();
        run.process(0.1, TRAINER, MAIN, Role::Trainer, limits(), 1000);
        run
    }

    pub(crate) fn event(&mut self, at: f64, what: EventKind) -> &mut Self {
        self.items.push(Item::Event(Event { at: s(at), what }));
        self
    }

    pub(crate) fn process(
        &mut self,
        at: f64,
        pid: i32,
        parent: i32,
        role: Role,
        limits: ResourceLimits,
        uid: u32,
    ) -> &mut Self {
        let facts = ProcessFacts {
            id: id(pid),
            parent,
            uid: Measured::Known(uid),
            command_line: vec!["python".into()],
            comm: "python".into(),
            limits: Measured::Known(limits),
            cgroups: vec!["0::/job".into()],
            role,
            seccomp: Measured::default(),
            cores_allowed: Measured::default(),
            forked_from: None,
        };
        self.event(at, EventKind::ProcessSeen { facts: Box::new(facts) })
    }

    pub(crate) fn tick(
        &mut self,
        at: f64,
        processes: Vec<ProcessReading>,
        more: impl FnOnce(&mut Sample),
    ) -> &mut Self {
        let mut sample = Sample { at: s(at), processes, ..Sample::default() };
        sample.host.memory = Measured::Known(host(50 * GIB, 8 * GIB));
        sample.filesystems = vec![shm(10 * MIB, 8 * GIB, 20, 1 << 20)];
        more(&mut sample);
        self.items.push(Item::Sample(Box::new(sample)));
        self
    }

    /// Main and trainer at rest.
    pub(crate) fn quiet(&mut self, at: f64) -> &mut Self {
        self.tick(at, vec![reading(MAIN, 1, "python"), reading(TRAINER, MAIN, "python")], |_| {})
    }

    pub(crate) fn exception(&mut self, at: f64, pid: i32, report: ExceptionReport) -> &mut Self {
        let message = AgentMessage::Exception(Box::new(report));
        self.event(at, EventKind::Agent { id: Some(id(pid)), pid, message })
    }

    pub(crate) fn ended(&mut self, at: f64, pid: i32, ending: Ending) -> &mut Self {
        self.event(at, EventKind::ProcessEnded { id: id(pid), ending, source: EndingSource::Wait })
    }

    pub(crate) fn kernel_kill(&mut self, at: f64, kill: KernelOomKill) -> &mut Self {
        self.event(at, EventKind::KernelOomKill(kill))
    }

    /// Main ends so, and the run with it.
    pub(crate) fn finish(&mut self, at: f64, ending: Ending) -> &mut Self {
        self.ended(at, MAIN, ending);
        self.facts.outcome = Some(Outcome::from_ending(ending));
        self.event(at, EventKind::Finished { survivors: vec![] })
    }

    pub(crate) fn timeline(&self) -> Timeline {
        Timeline::read(&mut self.items.clone().into_iter()).unwrap()
    }

    /// Without a look at its sentences: of any figures two may be the same by chance.
    pub(crate) fn verdict_of_any_figures(&self) -> Verdict {
        diagnose(&self.facts, &self.timeline())
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let verdict = self.verdict_of_any_figures();
        verdict.findings.iter().flat_map(|finding| &finding.evidence).for_each(says_what_it_is_said_to);
        verdict
    }
}

/// A reading that its sentence says is not shown beside it, and one that it does not say is.
pub(crate) fn says_what_it_is_said_to(evidence: &Evidence) {
    let spelt = match (&evidence.value, evidence.limit.and_then(Limit::at)) {
        (EvidenceValue::Text(text), _) => text.trim_end_matches('.').to_owned(),
        (EvidenceValue::Missing(..), _) => return,
        (EvidenceValue::Number(n, unit), None) => figures::amount(*n, unit.word()),
        (EvidenceValue::Number(n, unit), Some(limit)) => {
            let used = if *unit == Unit::Bytes { figures::amount(*n, "bytes") } else { figures::number(*n) };
            format!("{used} of {}", figures::amount(limit as f64, unit.word()))
        }
    };
    assert_eq!(evidence.said, evidence.sentence.contains(&spelt), "{spelt}: {evidence:?}");
}

/// An exception that leaves a `Process`.
pub(crate) fn raised(type_name: &str, text: &str) -> ExceptionReport {
    ExceptionReport {
        left: "process".into(),
        type_name: type_name.into(),
        text: text.into(),
        stack: vec!["…/torch/multiprocessing/reductions.py:557 reduce_storage".into()],
        loader: Some(LoaderSettings {
            workers: 1,
            start_method: Some("forkserver".into()),
            start_method_is_default: true,
            sharing_strategy: Some("file_system".into()),
            ..LoaderSettings::default()
        }),
        started_by: Some("forkserver".into()),
        sharing_strategy: Some("file_system".into()),
        ..ExceptionReport::default()
    }
}

/// Causes in the order told, notes left out.
pub(crate) fn causes(verdict: &Verdict) -> Vec<&str> {
    verdict.findings.iter().filter(|f| f.severity > Severity::Note).map(|f| f.cause.as_str()).collect()
}

/// Findings of causes that have a name: growth without one is told where nothing else explains it.
pub(crate) fn named(verdict: &Verdict) -> Vec<&Finding> {
    verdict.findings.iter().filter(|finding| finding.cause != "unnamed-growth").collect()
}

pub(crate) fn undetermined(verdict: &Verdict) -> Vec<&str> {
    verdict.undetermined.iter().map(|u| u.cause.as_str()).collect()
}

pub(crate) fn sentences(finding: &Finding) -> String {
    finding.evidence.iter().map(|e| e.sentence.as_str()).collect::<Vec<_>>().join("\n")
}
