//! Does a run show nproc-rlimit? page.md says what that is, and how it differs from its look-alikes.

use super::pids_limit_cgroup::{fewer_threads, threads_sentence};
use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::given::{SECCOMP_FILTER, STARTED_A_SECOND};
use crate::policy::limits::{counted_at_limit, reaches, NEAR_LIMIT, TASKS_LEFT};
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let refused = analysis.timeline.cgroups().any(|group| group.refused.growth().unwrap_or(0) > 0);
    if refused || analysis.timeline.fork_rejections().next().is_some() {
        return Judgement::Nothing;
    }
    by_failure(analysis, |failure| {
        let reported = failure.symptom() == Symptom::NoTask;
        match reported || failure.unexplained_end() {
            true => judge_failure(analysis, failure, reported),
            false => Ok(None),
        }
    })
}

fn judge_failure(analysis: &Analysis, failure: &Failure, reported: bool) -> Result<Option<Finding>, String> {
    let uid = failure.process.and_then(|process| process.uid());
    let counted = failure.counts().and_then(|counts| counts.nproc);
    let limit = counted.or_else(|| failure.process?.limits?.processes.at());
    let (Some(limit), false) = (limit, uid == Some(0)) else { return Ok(None) };
    // Mappings for a thread's stack run out with the same words.
    if let Some((mappings, max)) =
        failure.counts().and_then(|counts| counts.mappings.zip(counts.max_map_count))
    {
        if counted_at_limit(mappings, max) {
            return Ok(None);
        }
    }
    let (tasks, at) = tasks_of_job(analysis, uid);
    let own = failure.counts().and_then(|counts| counts.threads).unwrap_or(0);
    let seen = tasks.max(own);
    let near = seen.saturating_add(TASKS_LEFT) >= limit || reaches(NEAR_LIMIT, seen, limit);
    // A filter of system calls refuses the first thread with the same words, far from this limit.
    let filtered =
        failure.process.and_then(|process| process.facts.as_ref()?.seccomp.known()) == Some(SECCOMP_FILTER);
    if reported && !near && filtered && super::clone3_seccomp_eperm::first_thread_refused(failure) {
        return Ok(None);
    }
    let known = match (reported, near) {
        (true, _) if own.saturating_add(TASKS_LEFT) >= limit || reaches(NEAR_LIMIT, own, limit) => {
            Proof::SeenInside
        }
        (true, true) => Proof::SeenOutside,
        (true, false) => Proof::InPart,
        (false, true) => Proof::ReadNearLimit,
        (false, false) if in_reach(failure, seen, limit) => {
            return Err(format!(
                "{} ended on its own, reported no exception, and the job used {} of the user's {} tasks",
                failure.process.map_or_else(|| "a process".into(), evidence::describe),
                evidence::count(seen),
                evidence::count(limit)
            ));
        }
        (false, false) => return Ok(None),
    };
    let user = uid.map_or("the user".to_owned(), |uid| format!("user {uid}"));
    let sentence = if near {
        format!(
            "The job had {} of {} tasks of {user} in use (ulimit -u).",
            evidence::count(seen),
            evidence::count(limit)
        )
    } else {
        format!(
            "A new task was refused; the job had {} of {} tasks of {user} (ulimit -u).",
            evidence::count(seen),
            evidence::count(limit)
        )
    };
    let source = failure
        .process
        .map_or("/proc/PID/limits".into(), |process| evidence::Source::Process(process.id.pid, "limits"));
    let mut evidence = vec![evidence::with_limit(
        evidence::number("tasks of the user", seen, "tasks", source, at.unwrap_or(failure.at), sentence),
        limit,
    )];
    evidence.extend(sharing::exception_sentence(failure));
    evidence.extend(threads_sentence(analysis));
    Ok(Some(finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure)))))
}

fn in_reach(failure: &Failure, seen: u64, limit: u64) -> bool {
    let age = failure
        .process
        .and_then(|process| process.threads.last())
        .map_or(f64::INFINITY, |(at, _)| failure.at.since(at).max(0.0));
    seen as f64 + age * STARTED_A_SECOND >= limit as f64
}

/// Most tasks of the job's user that were seen together: the sum over processes that overlap at the busiest moment.
fn tasks_of_job(analysis: &Analysis, uid: Option<u32>) -> (u64, Option<ullage_model::At>) {
    let of_user = || {
        analysis
            .timeline
            .processes()
            .filter(|process| uid.is_none() || process.uid().is_none_or(|u| Some(u) == uid))
    };
    let moments: std::collections::BTreeSet<_> =
        of_user().filter_map(|process| process.threads.peak().map(|p| p.0)).collect();
    moments
        .into_iter()
        .map(|at| {
            let tasks: f64 = of_user()
                .filter(|process| process.first_seen <= at && process.last_seen >= at)
                .filter_map(|process| process.threads.at_or_before(at))
                .map(|(_, threads)| threads)
                .sum();
            (tasks as u64, Some(at))
        })
        .max()
        .unwrap_or((0, None))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![fewer_threads()];
    fixes.push(Fix::new(
        "Raise the soft limit to the hard limit before the job starts",
        "ulimit -S -u $(ulimit -H -u)",
    ));
    if context.is_root() {
        fixes.push(Fix::new("Raise the hard limit", "ulimit -u unlimited"));
    }
    fixes
}
