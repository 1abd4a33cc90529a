//! Trees whose truth is known, sample by sample.

use super::*;
use proptest::prelude::*;
use ullage_model::cgroup::{CgroupMemory, CgroupMemoryParts};
use ullage_model::host::HostMemory;
use ullage_model::{
    AgentMessage, At, Bytes, CgroupReading, CgroupVersion, ClockTicks, FilesystemReading, Limit, Measured,
    PageKind, Pages, ProcessFacts, ProcessId, ProcessMemory, ProcessReading, ProcessState, Role,
};

const MIB: u64 = 1 << 20;

fn id(pid: i32) -> ProcessId {
    ProcessId { pid, start: ClockTicks(pid as u64) }
}

fn seen(pid: i32, forked_from: Option<i32>) -> Event {
    let facts = ProcessFacts {
        id: id(pid),
        parent: forked_from.unwrap_or(1),
        uid: Measured::default(),
        command_line: vec![],
        comm: "python".into(),
        limits: Measured::default(),
        cgroups: vec!["0::/job".into()],
        role: Role::Other,
        seccomp: Measured::default(),
        cores_allowed: Measured::default(),
        forked_from: forked_from.map(id),
    };
    Event { at: At(0), what: EventKind::ProcessSeen { facts: Box::new(facts) } }
}

/// MiB of private, shared and file memory, and MiB of faults.
fn process(pid: i32, anonymous: u64, shared: u64, file: u64, faults: u64) -> ProcessReading {
    ProcessReading {
        id: id(pid),
        parent: 1,
        state: ProcessState::Sleeping,
        comm: "python".into(),
        threads: 1,
        cpu: ClockTicks(0),
        minor_faults: faults * MIB / 4096,
        major_faults: 0,
        memory: Measured::Known(ProcessMemory {
            anonymous: Bytes(anonymous * MIB),
            shared: Bytes(shared * MIB),
            file: Bytes(file * MIB),
            ..ProcessMemory::default()
        }),
        descriptors: Measured::default(),
        mappings: Measured::default(),
        exclusive: Measured::default(),
        run_delay_ns: Measured::default(),
    }
}

fn sample(seconds: f64, processes: Vec<ProcessReading>) -> Sample {
    Sample { at: At::from_seconds(seconds), processes, ..Sample::default() }
}

/// A row: of the job where the pid is 0; MiB exclusive and shared.
fn row(pid: i32, kind: PageKind, exclusive: u64, shared: u64) -> Pages {
    let of = (pid != 0).then(|| id(pid));
    let bytes = Bytes((exclusive + shared) * MIB);
    Pages {
        bytes,
        exclusive: Bytes(exclusive * MIB),
        shared: Bytes(shared * MIB),
        proportional: bytes,
        ..Pages::none(of, kind)
    }
}

/// A parent of 1000 MiB and two children.
fn family() -> Accountant {
    let mut accountant = Accountant::default();
    accountant.event(&seen(10, None));
    accountant.sample(&sample(1.0, vec![process(10, 1000, 0, 50, 1000)]));
    accountant.event(&seen(11, Some(10)));
    accountant.event(&seen(12, Some(10)));
    accountant
}

fn young() -> Vec<ProcessReading> {
    vec![process(10, 1000, 0, 50, 1000), process(11, 1002, 0, 10, 6), process(12, 1002, 0, 10, 6)]
}

#[test]
fn children_that_have_hardly_faulted_add_hardly_anything() {
    let mut accountant = family();
    accountant.sample(&sample(2.0, young()));
    let summary = accountant.summary();
    let private = summary.categories["anonymous"] / MIB;
    assert!((1004..=1016).contains(&private), "{private}");
    assert!(summary.error_bytes >= 5 * MIB && summary.error_bytes <= 12 * MIB, "{}", summary.error_bytes);
    assert!(summary.source.contains("page faults"));
}

#[test]
fn a_survey_says_what_is_shared_and_sizes_carry_it_on() {
    let mut accountant = family();
    let mut surveyed = sample(3.0, young());
    surveyed.survey = vec![
        row(0, PageKind::Anonymous, 600, 700),
        row(0, PageKind::Malloc, 100, 0),
        row(0, PageKind::MappedFiles, 0, 60),
        row(10, PageKind::Anonymous, 100, 900),
        row(11, PageKind::Anonymous, 300, 702),
        row(12, PageKind::Anonymous, 300, 702),
    ];
    accountant.sample(&surveyed);
    let last = accountant.summary().last.unwrap();
    assert_eq!(last.categories["anonymous"] / MIB, 1300);
    let own: Vec<u64> = accountant.own_at_peak().iter().map(|(_, bytes)| bytes / MIB).collect();
    assert_eq!(own, [1000, 300, 300], "what is shared since a fork is the ancestor's");
    assert_eq!((last.categories["malloc"] / MIB, last.categories["mapped-files"] / MIB), (100, 60));
    assert_eq!(last.bytes, last.categories.values().sum::<u64>());
    let sharing = last.sharing.unwrap();
    assert_eq!((sharing.private / MIB, sharing.within_job / MIB, sharing.with_others), (700, 760, 0));
    // One grows by 200 MiB, one ends: its 300 are gone, what it shared is not.
    let later = sample(4.0, vec![process(10, 1200, 0, 50, 1200), process(11, 1002, 0, 10, 6)]);
    let tree = accountant.tree(&later);
    let private: u64 = ["anonymous", "malloc"].iter().map(|id| tree.categories[*id]).sum();
    assert_eq!(private / MIB, 1300);
    // 150 MiB of faults that no size shows: copies, or not.
    let later = sample(
        4.0,
        vec![process(10, 1000, 0, 50, 1000), process(11, 1002, 0, 10, 156), process(12, 1002, 0, 10, 6)],
    );
    assert_eq!(accountant.tree(&later).error_bytes / MIB, 150);
}

/// What malloc said in a process, MiB.
fn malloc_said(pid: i32, anonymous: u64, used: u64, free: u64) -> Event {
    let figures = [("anonymous", anonymous), ("malloc_used", used), ("malloc_free", free)];
    let figures = figures.map(|(name, mib)| (name.to_owned(), (mib * MIB) as f64)).into();
    let what = EventKind::Agent { id: Some(id(pid)), pid, message: AgentMessage::Memory { figures } };
    Event { at: At(0), what }
}

/// Two that have nothing in common, with 400 MiB of malloc's each.
fn two_heaps(said: &[Event]) -> std::collections::BTreeMap<String, u64> {
    let mut accountant = Accountant::default();
    for event in [seen(10, None), seen(11, None)].iter().chain(said) {
        accountant.event(event);
    }
    let mut surveyed = sample(3.0, vec![process(10, 500, 0, 0, 0), process(11, 500, 0, 0, 0)]);
    surveyed.survey = vec![
        row(0, PageKind::Malloc, 800, 0),
        row(0, PageKind::Anonymous, 200, 0),
        row(10, PageKind::Malloc, 400, 0),
        row(11, PageKind::Malloc, 400, 0),
    ];
    accountant.sample(&surveyed);
    let memory = accountant.summary();
    assert_eq!(memory.peak_bytes, memory.categories.values().sum::<u64>());
    memory.categories.into_iter().map(|(id, bytes)| (id, bytes / MIB)).collect()
}

#[test]
fn what_malloc_said_splits_its_heap_and_what_it_did_not_say_stays_whole() {
    let found = two_heaps(&[malloc_said(10, 490, 100, 290)]);
    let expected =
        [("anonymous", 200), ("malloc", 410), ("malloc-freed-but-held", 290), ("malloc-in-use", 100)];
    assert_eq!(found, expected.map(|(id, mib)| (id.to_owned(), mib)).into());
    let found = two_heaps(&[malloc_said(10, 490, 100, 900), malloc_said(11, 490, 380, 200)]);
    assert_eq!(
        (found["malloc-in-use"], found["malloc-freed-but-held"]),
        (480, 320),
        "free, and without pages"
    );
    assert!(!found.contains_key("malloc"));
}

#[test]
fn what_malloc_said_at_another_time_or_of_another_heap_splits_nothing() {
    assert_eq!(two_heaps(&[malloc_said(10, 200, 100, 90)])["malloc"], 800);
    assert_eq!(two_heaps(&[malloc_said(10, 500, 0, 0)])["malloc"], 800);
    assert!(!two_heaps(&[]).contains_key("malloc-in-use"));
}

#[test]
fn an_own_cgroup_is_exact_and_leaves_unmapped_cache_aside() {
    let mut accountant = family();
    let mut in_group = sample(2.0, young());
    in_group.cgroups = vec![cgroup("/x/ullage-77", 1500, 1050, 300, 100, 20)];
    accountant.sample(&in_group);
    let summary = accountant.summary();
    assert_eq!(summary.source, "own memory cgroup");
    assert_eq!(summary.categories["anonymous"] / MIB, 1050);
    assert_eq!((summary.categories["shared"] / MIB, summary.categories["file"] / MIB), (100, 50));
    assert_eq!(summary.beside["page-cache"] / MIB, 150, "300 of files, less 100 shared and 50 mapped");
    assert_eq!(summary.categories["unexplained"] / MIB, 130, "1500 less 1050, 300 and 20");
    assert_eq!(summary.peak_bytes, summary.categories.values().sum::<u64>());
}

#[test]
fn the_tree_holds_no_more_than_its_cgroup_or_the_machine() {
    let mut accountant = Accountant::default();
    accountant.event(&seen(10, None));
    let mut full = sample(1.0, vec![process(10, 1000, 0, 500, 0)]);
    full.cgroups = vec![cgroup("/job", 1200, 1000, 200, 0, 0)];
    accountant.sample(&full);
    let summary = accountant.summary();
    assert_eq!(summary.peak_bytes, 1200 * MIB);
    assert_eq!(summary.categories.values().sum::<u64>(), 1200 * MIB);
    assert!(summary.error_bytes >= 300 * MIB && summary.source.contains("cgroup"));
    let mut two = sample(1.0, vec![process(10, 1000, 0, 500, 0), process(11, 100, 0, 0, 0)]);
    let mut other = seen(11, None);
    if let EventKind::ProcessSeen { facts } = &mut other.what {
        facts.cgroups = vec!["0::/elsewhere".into()];
    }
    accountant.event(&other);
    two.cgroups = full.cgroups.clone();
    two.cgroups.push(cgroup("/", 9000, 0, 0, 0, 0));
    assert_eq!(accountant.tree(&two).bytes, 1600 * MIB, "one of them is in another cgroup");
    two.host.memory = Measured::Known(HostMemory {
        total: Bytes(4000 * MIB),
        free: Bytes(3000 * MIB),
        ..HostMemory::default()
    });
    assert_eq!(accountant.tree(&two).bytes, 1000 * MIB);
}

#[test]
fn what_grew_in_dev_shm_and_nobody_maps_may_be_another_job_s_and_stands_beside() {
    let mut accountant = Accountant::default();
    let with = |used: u64, seconds: f64| {
        let mut sample = sample(seconds, vec![process(10, 100, 20, 0, 0)]);
        sample.filesystems = vec![FilesystemReading {
            used_for: FilesystemUse::Shm,
            path: "/dev/shm".into(),
            device: 1,
            tmpfs: true,
            size: Limit::Unlimited,
            used: Bytes(used * MIB),
            inodes: Limit::Unlimited,
            inodes_used: 1,
        }];
        sample
    };
    accountant.sample(&with(50, 1.0));
    accountant.sample(&with(100, 2.0));
    let tree = accountant.tree(&with(100, 3.0));
    assert_eq!((tree.categories["shared"] / MIB, tree.beside["shm-unmapped"] / MIB), (20, 30));
    assert_eq!(tree.bytes / MIB, 120);
}

#[test]
fn segments_that_were_counted_take_the_place_of_estimates() {
    let mut accountant = family();
    let mut surveyed = sample(3.0, vec![process(10, 1000, 400, 50, 1000)]);
    surveyed.survey = vec![
        row(0, PageKind::Anonymous, 1000, 0),
        row(0, PageKind::TorchShared, 100, 300),
        row(10, PageKind::Anonymous, 1000, 0),
    ];
    let memfd = SegmentUse { kind: PageKind::Memfd, allocated: 200 * MIB };
    accountant.segments(&[SegmentUse { kind: PageKind::TorchShared, allocated: 600 * MIB }, memfd]);
    accountant.sample(&surveyed);
    let last = accountant.summary().last.unwrap();
    assert_eq!((last.categories["torch-shared"] / MIB, last.categories["memfd"] / MIB), (600, 200));
    assert_eq!(last.sharing.unwrap().within_job / MIB, 600, "three of four parts, as surveyed");
}

/// Segments on their way are mapped by nobody, so that one more that is mapped says nothing of them.
#[test]
fn shared_memory_grows_by_no_more_than_came_to_the_processes() {
    let mut accountant = family();
    let segments = [SegmentUse { kind: PageKind::TorchShared, allocated: 16 * MIB }];
    let mut surveyed = sample(3.0, young());
    surveyed.processes[1].memory = Measured::Known(ProcessMemory {
        anonymous: Bytes(1002 * MIB),
        shared: Bytes(8192),
        ..ProcessMemory::default()
    });
    surveyed.survey = vec![row(0, PageKind::Anonymous, 600, 700), row(0, PageKind::MappedFiles, 0, 60)];
    accountant.segments(&segments);
    accountant.sample(&surveyed);
    let later = sample(4.0, vec![process(10, 1000, 0, 50, 1000), process(11, 1002, 3, 10, 6)]);
    let tree = accountant.tree(&later);
    let shared = tree.categories["torch-shared"] + tree.categories.get("shared").unwrap_or(&0);
    assert!((16..=19).contains(&(shared / MIB)), "{:?}", tree.categories);
}

fn cgroup(path: &str, current: u64, anonymous: u64, file: u64, shared: u64, kernel: u64) -> CgroupReading {
    let mib = |n: u64| Bytes(n * MIB);
    CgroupReading {
        version: CgroupVersion::V2,
        path: path.into(),
        memory: Measured::Known(CgroupMemory {
            current: mib(current),
            limit: Limit::Unlimited,
            high: Limit::Unlimited,
            peak: Measured::default(),
            swap: Measured::Known(Bytes(0)),
            swap_limit: Measured::default(),
            oom_kills: Measured::default(),
            oom_kills_subtree: Measured::default(),
            limit_hits: Measured::default(),
            high_hits: Measured::default(),
            anonymous_huge: Measured::default(),
            oom_group: Measured::default(),
            parts: Measured::Known(CgroupMemoryParts {
                anonymous: mib(anonymous),
                file: mib(file),
                shared: mib(shared),
                inactive_file: Bytes(0),
                kernel: mib(kernel),
            }),
        }),
        pids: Measured::default(),
    }
}

proptest! {
    #[test]
    fn parts_are_the_whole_and_bounds_hold(
        sizes in proptest::collection::vec((0..5000u64, 0..500u64, 0..500u64, 0..5000u64), 1..6),
        rows in proptest::collection::vec((0..3i32, 0..12usize, 0..3000u64, 0..3000u64), 0..12),
        current in 1..6000u64,
    ) {
        let mut accountant = family();
        let mut one = sample(2.0, sizes.iter().zip(10..).map(|((a, s, f, faults), pid)| process(pid, *a, *s, *f, *faults)).collect());
        one.survey = rows.iter().map(|(pid, kind, own, shared)| row(if *pid == 0 { 0 } else { 9 + pid }, PageKind::ALL[*kind], *own, *shared)).collect();
        one.cgroups = vec![cgroup("/job", current, 0, 0, 0, 0)];
        accountant.sample(&one);
        one.survey.clear();
        for memory in [accountant.tree(&one), accountant.summary().last.unwrap_or_default()] {
            prop_assert_eq!(memory.bytes, memory.categories.values().sum::<u64>());
            prop_assert!(memory.bytes <= current * MIB);
            if let Some(sharing) = memory.sharing {
                prop_assert_eq!(sharing.private + sharing.within_job + sharing.with_others, memory.bytes);
            }
        }
    }
}

#[test]
fn page_cache_and_kernel_memory_of_the_jobs_cgroup_stand_beside_the_whole() {
    let mut accountant = Accountant::default();
    accountant.event(&seen(10, None));
    let mut now = sample(1.0, vec![process(10, 1000, 0, 50, 0)]);
    now.cgroups = vec![cgroup("/job", 2000, 1000, 400, 100, 30)];
    let tree = accountant.tree(&now);
    assert_eq!((tree.beside["page-cache"] / MIB, tree.beside["kernel"] / MIB), (250, 30));
    assert_eq!(tree.bytes, tree.categories.values().sum::<u64>());
    assert_eq!(tree.bytes / MIB, 1050, "they are no part of it");
}
