//! Does a run show cgroup-sizing-by-host-view? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::counts::{CORES_TIMES, OTHER_THREADS};
use crate::policy::given::THOUSAND;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Fix, Limit, Place, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let cores = u64::from(analysis.machine().cores);
    let Some((allowed, how)) = allowed(analysis) else { return Judgement::Nothing };
    if cores < 2 * allowed {
        return Judgement::Nothing;
    }
    let workers = most_workers(analysis);
    let busiest = analysis
        .timeline
        .processes()
        .filter_map(|process| Some((process, process.threads.peak()?)))
        .max_by(|a, b| a.1 .1.total_cmp(&b.1 .1));
    let mut evidence: Vec<Evidence> = Vec::new();
    if let Some((at, workers)) = workers.filter(|(_, workers)| *workers >= cores && *workers > allowed) {
        let sentence = format!(
            "The job ran {} at once on a machine with {} cores, but may use {how}.",
            evidence::plural(workers, "loader worker", "loader workers"),
            evidence::count(cores)
        );
        let met =
            evidence::number("loader workers", workers, "processes", "roles of processes", at, sentence);
        evidence.push(evidence::with_limit(met, allowed));
        evidence.extend(cost_of_a_worker(analysis, workers));
    } else if let Some((process, (at, threads))) = busiest {
        if (threads as u64) < cores || cores < CORES_TIMES * allowed || cores < 2 * OTHER_THREADS {
            return Judgement::Nothing;
        }
        let sentence = format!(
            "{} ran {} on a machine with {} cores, but may use {how}.",
            evidence::capital(&evidence::describe(process)),
            evidence::plural(threads as u64, "thread", "threads"),
            evidence::count(cores)
        );
        let source = evidence::Source::Process(process.id.pid, "stat");
        let met = evidence::number("threads", threads as u64, "threads", source, at, sentence);
        evidence.push(evidence::with_limit(met, allowed));
    } else {
        return Judgement::Nothing;
    }
    let killed = analysis.oom_victims.iter().any(|victim| victim.of_cgroup());
    let severity = if killed { Severity::Warning } else { Severity::Note };
    let context = RemedyContext { bytes: Some(allowed), ..analysis.remedy_context(None) };
    Judgement::one(of_job(&RULE, severity, Proof::Estimated, evidence, &context))
}

/// Cores that the job may keep busy, and by what.
fn allowed(analysis: &Analysis) -> Option<(u64, String)> {
    let main = analysis.timeline.process(analysis.main()?)?;
    let affinity = main.facts.as_ref()?.cores_allowed.known().map(u64::from);
    let quota = match analysis.machine().cpu_quota.known() {
        Some(Limit::At(thousandths)) => Some(thousandths),
        _ => None,
    };
    let by_quota = quota.map(|thousandths| thousandths.div_ceil(1000).max(1));
    match (affinity, by_quota) {
        (Some(affinity), Some(by_quota)) if affinity <= by_quota => Some((affinity, by_affinity(affinity))),
        (_, Some(by_quota)) => {
            let cores = quota.unwrap_or(0) as f64 / THOUSAND;
            Some((by_quota, format!("{cores:.1} cores (its cgroup's quota)")))
        }
        (Some(affinity), None) => Some((affinity, by_affinity(affinity))),
        (None, None) => None,
    }
}

fn by_affinity(cores: u64) -> String {
    format!("{} (its affinity)", evidence::plural(cores, "core", "cores"))
}

fn is_worker(process: &ProcessHistory) -> bool {
    matches!(process.role, Role::LoaderWorker(_))
}

/// Most workers that lived at one moment.
fn most_workers(analysis: &Analysis) -> Option<(ullage_model::At, u64)> {
    let workers: Vec<&ProcessHistory> =
        analysis.timeline.processes().filter(|process| is_worker(process)).collect();
    workers
        .iter()
        .map(|one| {
            let at = one.first_seen;
            let alive = |other: &&&ProcessHistory| other.first_seen <= at && other.last_seen >= at;
            (at, workers.iter().filter(alive).count() as u64)
        })
        .max_by_key(|(at, count)| (*count, std::cmp::Reverse(*at)))
}

fn cost_of_a_worker(analysis: &Analysis, workers: u64) -> Option<Evidence> {
    let peak = |process: &ProcessHistory| process.anonymous.peak();
    let (at, each) = analysis
        .timeline
        .processes()
        .filter(|p| is_worker(p))
        .filter_map(peak)
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let sentence = format!(
        "A worker held up to {} of anonymous memory; {} at most for all workers.",
        evidence::bytes(each as u64),
        evidence::bytes((each as u64).saturating_mul(workers))
    );
    Some(evidence::number("memory of a worker", each as u64, "bytes", "/proc/PID/status", at, sentence))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let allowed = context.bytes.unwrap_or(4);
    vec![
        Fix::new(
            "Run as many workers as the job has cores",
            format!("DataLoader(dataset, num_workers=min({allowed}, len(os.sched_getaffinity(0))))"),
        )
        .only(Place::Loader),
        Fix::new(
            "Run as many threads in the numeric libraries",
            format!(
                "export OMP_NUM_THREADS={allowed} OPENBLAS_NUM_THREADS={allowed} MKL_NUM_THREADS={allowed}"
            ),
        ),
        Fix::new(
            "Python 3.13 or newer: make os.cpu_count() return it",
            format!("export PYTHON_CPU_COUNT={allowed}"),
        ),
    ]
}
