//! A job to look at: a trainer with loader workers of which one was killed, and a run of ten minutes.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use ullage_job_state::{Exit, Happened, Identity, JobState, Memory, Process, SharedSegment, Weight};
use ullage_model::{
    At, ClockTicks, Growth, GrowthClass, Limit, LimitKind, LimitState, Measured, Outcome, OutcomeKind,
    ProcessId, Role, RunId, Scope, SegmentKind, Verdict,
};
use ullage_tui::{Buffer, Heading, Rect, Standing, View};

const MIB: u64 = 1 << 20;

pub fn seconds(n: u64) -> At {
    At(n * 1_000_000_000)
}

fn process(pid: i32, parent: i32, depth: u16, role: Role, name: &str, private: u64) -> Process {
    Process {
        identity: Arc::new(Identity {
            id: ProcessId { pid, start: ClockTicks(1) },
            role,
            name: name.into(),
            command: vec!["python".into(), "train.py".into()],
        }),
        parent,
        depth,
        private: Some(private),
        shared: Some(402 * MIB),
        swap: Some(0),
        descriptors: Some(88),
        mappings: Some(1204),
        cpu_s: 12.5,
        cpu_share: Some(0.41),
        line: [1, 2, 3, 4, 5, 6, 7, 8],
        exited: None,
    }
}

fn limit(kind: LimitKind, scope: Scope, used: u64, most: u64, left: Option<f64>) -> LimitState {
    LimitState {
        kind,
        scope,
        used: Measured::Known(used),
        limit: Measured::Known(Limit::At(most)),
        slope_per_s: left.map(|_| 1.0),
        time_left_s: left,
        growing_for_s: left.map(|_| 300.0),
        warning: left.is_some_and(|left| left < 900.0),
    }
}

/// The moment of second `n`, with so many loader workers.
pub fn state(n: u64, workers: u32) -> JobState {
    let mut processes = vec![
        process(20591, 1, 0, Role::Main, "python", 120 * MIB),
        process(20592, 20591, 1, Role::Rank(3), "python", (1200 + n) * MIB),
    ];
    for worker in 0..workers {
        let role = Role::LoaderWorker(Some(worker));
        let pid = 20644 + worker as i32;
        processes.push(process(pid, 20592, 2, role, "pt_data_worker", (610 + n / 10) * MIB));
    }
    if n >= 500 && workers > 1 {
        processes[3].exited = Some(Arc::new(Exit {
            at: seconds(500),
            how: "was killed by the kernel's OOM killer at the limit of cgroup /job_4711".into(),
            failed: true,
        }));
    }
    processes.push(process(20700, 20591, 1, Role::ResourceTracker, "python", 9 * MIB));
    let bytes = (3600 + n) * MIB;
    JobState {
        at: seconds(n),
        memory: Memory {
            bytes,
            error_bytes: 100 * MIB,
            categories: vec![
                ("anonymous".into(), bytes / 2),
                ("torch-shared".into(), bytes / 4),
                ("malloc".into(), bytes / 4),
                ("stacks".into(), 30 << 10),
            ],
            beside: vec![("page-cache".into(), 700 * MIB)],
        },
        bytes_per_second: Some(MIB as f64),
        processes,
        limits: Arc::new(vec![
            limit(
                LimitKind::ShmBytes,
                Scope::Filesystem("/dev/shm".into()),
                1956 * MIB,
                2048 * MIB,
                Some(660.0),
            ),
            limit(
                LimitKind::CgroupMemory,
                Scope::Cgroup("/job_4711".into()),
                bytes,
                16384 * MIB,
                Some(11_000.0),
            ),
            limit(
                LimitKind::Mappings,
                Scope::Process(ProcessId { pid: 20592, start: ClockTicks(1) }, Role::Rank(3)),
                41_102,
                65_530,
                None,
            ),
        ]),
        growth: Some(Arc::new(Growth {
            class: GrowthClass::CopyOnWrite,
            because: "Workers write into pages that they inherited.".into(),
            bytes: 600 * MIB,
            per_second: MIB as f64,
            since: Some(seconds(60)),
            share: 0.9,
            process: None,
            until: None,
            parts: Vec::new(),
            explained_by: None,
        })),
        segments: Some(Arc::new(vec![
            SharedSegment {
                kind: SegmentKind::Torch,
                name: "torch_20644_*".into(),
                count: 812,
                bytes: 1900 * MIB,
                creator: Some(20644),
                mappers: 2,
                unused: false,
            },
            SharedSegment {
                kind: SegmentKind::PosixShm,
                name: "psm_1d3f".into(),
                count: 1,
                bytes: 64 * MIB,
                creator: None,
                mappers: 0,
                unused: true,
            },
        ])),
        stall_s: Some(0.25),
        oom_kills: u64::from(n >= 500),
        cost: ullage_model::Cost::default(),
        ..JobState::default()
    }
}

pub fn verdict() -> Verdict {
    Verdict {
        run: RunId("20261125-010203-train-7".into()),
        command: vec!["python".into(), "train.py".into()],
        outcome: Outcome::of(OutcomeKind::StillRunning),
        healthy: true,
        findings: Vec::new(),
        limits: Vec::new(),
        memory: ullage_model::MemorySummary {
            peak_bytes: 4200 * MIB,
            source: "readings".into(),
            ..Default::default()
        },
        growth: None,
        first_failure: None,
        segments: None,
        undetermined: Vec::new(),
        not_seen: Vec::new(),
        fixes: Vec::new(),
        cost_cpu_share: None,
        cost_peak_rss: None,
        marks: Vec::new(),
        attempts: Vec::new(),
        duration_s: Some(600.0),
    }
}

pub fn empty() -> View {
    let heading = Heading {
        command: ["python", "train.py", "--epochs", "9"].map(String::from).to_vec(),
        place: vec!["job 4711".into(), "n064".into()],
    };
    View::new(heading, false)
}

/// The view of a live run of ten minutes.
pub fn view(workers: u32) -> View {
    let mut view = empty();
    let event = |n: u64, weight, text: &str| Happened { at: seconds(n), weight, text: text.into() };
    view.happened(event(0, Weight::Usual, "main 20591 started"));
    view.happened(event(4, Weight::Usual, "loader worker 0 20644 started"));
    view.happened(event(500, Weight::Failure, "loader worker 1 20645 was killed by the kernel's OOM killer"));
    (1..=520).for_each(|n| view.state(Arc::new(state(n, workers))));
    view.judged(Box::new(verdict()));
    view.standing = Standing::Live;
    view
}

/// A frame as text, a line each, without the blanks behind them.
pub fn text(view: &mut View, width: u16, height: u16) -> String {
    view.resized(width, height);
    screen(&view.draw(Rect::new(0, 0, width, height)))
}

pub fn screen(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y: u16| -> String {
        let cells = (0..area.width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..area.height).map(line).collect::<Vec<_>>().join("\n")
}
