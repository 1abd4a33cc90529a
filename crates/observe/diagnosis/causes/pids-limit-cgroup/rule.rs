//! Does a run show pids-limit-cgroup? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::CgroupHistory;
use crate::policy::limits::{NEAR_LIMIT, TASKS_SEEN};
use crate::rule::finding::{finding, of_job};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Evidence, Fix, OutcomeKind, Place, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let refused = analysis
        .timeline
        .cgroups()
        .filter(|group| group.refused.growth().unwrap_or(0) > 0 && met(analysis, group))
        .max_by_key(|group| group.refused.growth());
    let logged = analysis.timeline.fork_rejections().next();
    let failure = cause_of_failure(analysis, refused);
    let mut evidence: Vec<Evidence> =
        refused.map(|group| counter_sentence(analysis, group)).into_iter().collect();
    evidence.extend(logged.map(|(at, cgroup)| {
        let sentence = format!("The kernel log shows a fork refused in {cgroup} by the pids controller.");
        evidence::text("fork rejected", cgroup, "kernel log", Some(*at), sentence)
    }));
    let known = if evidence.is_empty() {
        let Some(group) = unread_but_near(analysis) else { return Judgement::Nothing };
        if !failure.is_some_and(|failure| failure.symptom() == Symptom::NoTask) {
            return Judgement::Nothing;
        }
        evidence.push(near_sentence(group));
        Proof::ReadNearLimit
    } else if refused.is_none() && failure.is_none() {
        return Judgement::Nothing;
    } else {
        Proof::KernelSaid
    };
    let context = analysis.remedy_context(failure);
    match failure {
        Some(failure) => {
            evidence.extend(sharing::exception_sentence(failure));
            evidence.extend(threads_sentence(analysis));
            Judgement::one(finding(analysis, &RULE, failure, known, evidence, &context))
        }
        None => {
            evidence.extend(threads_sentence(analysis));
            Judgement::one(of_job(&RULE, severity(analysis), known, evidence, &context))
        }
    }
}

fn severity(analysis: &Analysis) -> Severity {
    let failed = analysis.plain_outcome().kind != OutcomeKind::StillRunning && !analysis.ended_well();
    if failed {
        Severity::Fatal
    } else {
        Severity::Warning
    }
}

/// A hierarchical counter also counts forks refused in groups beside the job's: it is the job's where the group
/// is its own, was near its limit, or a process of the job says that it was refused.
fn met(analysis: &Analysis, group: &CgroupHistory) -> bool {
    let near = limit(group)
        .is_some_and(|limit| group.tasks.peak().is_some_and(|(_, peak)| peak >= TASKS_SEEN * limit as f64));
    near || is_own(analysis, group)
        || analysis.failures.iter().any(|failure| failure.symptom() == Symptom::NoTask)
}

fn is_own(analysis: &Analysis, group: &CgroupHistory) -> bool {
    let paths = analysis
        .timeline
        .processes()
        .filter_map(|process| process.facts.as_ref())
        .flat_map(|facts| &facts.cgroups);
    paths.filter_map(|line| line.split_once(':')?.1.split_once(':')).any(|(controllers, path)| {
        let here = if group.is_v2() {
            controllers.is_empty()
        } else {
            controllers.split(',').any(|name| name == "pids")
        };
        here && (path == group.path() || (group.path().len() > 1 && path.ends_with(group.path())))
    })
}

fn limit(group: &CgroupHistory) -> Option<u64> {
    group.last.pids.as_known()?.limit.at()
}

/// Its own, or the tightest above it: until kernel 6.11 a fork is counted where it was tried.
fn limit_above(analysis: &Analysis, group: &CgroupHistory) -> Option<u64> {
    let above = analysis.timeline.cgroups().filter(|other| {
        other.is_v2() == group.is_v2() && (other.path() == "/" || group.path().starts_with(other.path()))
    });
    limit(group).or_else(|| above.filter_map(limit).min())
}

/// The exception that says it, else a process that ended on its own after the counter moved.
fn cause_of_failure<'c, 'a>(
    analysis: &'c Analysis<'a>,
    refused: Option<&CgroupHistory>,
) -> Option<&'c Failure<'a>> {
    let reported = |failure: &&Failure| failure.symptom() == Symptom::NoTask;
    analysis.failures.iter().find(reported).or_else(|| {
        let (before, _) = refused?.refused.moved?;
        analysis.failures.iter().find(|failure| failure.at >= before && failure.unexplained_end())
    })
}

fn counter_sentence(analysis: &Analysis, group: &CgroupHistory) -> Evidence {
    let grown = group.refused.growth().unwrap_or(0);
    let at = group.refused.moved.map_or(group.last_at, |(_, at)| at);
    let limit = limit_above(analysis, group).unwrap_or(0);
    let sentence = format!(
        "The cgroup {} refused {}: all of its {} tasks (pids.max) were in use.",
        group.path(),
        evidence::plural(grown, "new task", "new tasks"),
        evidence::count(limit)
    );
    let met = evidence::number(
        "tasks refused",
        grown,
        "tasks",
        evidence::Source::Cgroup("pids.events", group.path().to_owned()),
        at,
        sentence,
    );
    evidence::with_limit(met, limit)
}

fn unread_but_near<'a>(analysis: &Analysis<'a>) -> Option<&'a CgroupHistory> {
    analysis.timeline.cgroups().find(|group| {
        group.refused.growth().is_none()
            && limit(group).is_some_and(|limit| {
                group.tasks.peak().is_some_and(|(_, peak)| peak >= NEAR_LIMIT * limit as f64)
            })
    })
}

fn near_sentence(group: &CgroupHistory) -> Evidence {
    let (at, peak) = group.tasks.peak().unwrap_or_default();
    let limit = limit(group).unwrap_or(0);
    let sentence = format!(
        "The cgroup {} had {} of {} in use; its counter of refused forks was unreadable.",
        group.path(),
        evidence::count(peak as u64),
        evidence::plural(limit, "task", "tasks")
    );
    evidence::with_limit(
        evidence::number(
            "tasks",
            peak as u64,
            "tasks",
            evidence::Source::Cgroup("pids.current", group.path().to_owned()),
            at,
            sentence,
        ),
        limit,
    )
}

/// Who has the threads.
pub(super) fn threads_sentence(analysis: &Analysis) -> Option<Evidence> {
    let busiest = analysis.timeline.processes().max_by(|a, b| peak(a).total_cmp(&peak(b)))?;
    let (at, threads) = busiest.threads.peak()?;
    let processes = analysis.timeline.processes().filter(|process| process.last.is_some()).count() as u64;
    let sentence = format!(
        "Of {} in the job, {} had the most threads: {}.",
        evidence::plural(processes, "process", "processes"),
        evidence::describe(busiest),
        evidence::count(threads as u64)
    );
    let source = evidence::Source::Process(busiest.id.pid, "stat");
    Some(evidence::number("threads", threads as u64, "threads", source, at, sentence))
}

fn peak(process: &crate::history::ProcessHistory) -> f64 {
    process.threads.peak().map_or(0.0, |(_, threads)| threads)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![fewer_threads()];
    fixes.push(
        Fix::new("In a container: raise its limit", "docker run --pids-limit=32768 IMAGE")
            .only(Place::Container),
    );
    fixes.push(Fix::new(
        "Under systemd: the same for your own unit",
        format!("systemd-run --user --scope -p TasksMax=32768 {}", context.typed()),
    ));
    fixes
}

/// Threads of the numeric libraries are the usual crowd.
pub(super) fn fewer_threads() -> Fix {
    Fix::new(
        "Run one thread per library and process: the workers already run in parallel",
        "export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1",
    )
}
