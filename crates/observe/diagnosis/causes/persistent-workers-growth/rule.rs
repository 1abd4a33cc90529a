//! Does a run show persistent-workers-growth? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::cohort::Cohort;
use crate::analysis::copies::{starter, Copy};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::ProcessHistory;
use crate::policy::growth::{WORKER_BYTES, WORKER_LASTED, WORKER_LASTED_S, WORKER_THERE_S};
use crate::policy::sizes::WARN_BYTES;
use crate::rule::finding::of_job;
use crate::rule::retainers::what_grows;
use crate::rule::{Judgement, Rule};
use crate::trend::{trend_of, LineFit, Trend};
use ullage_model::{Fix, Place, Proof, Role, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let workers =
        analysis.timeline.processes().filter(|process| matches!(process.role, Role::LoaderWorker(_)));
    let mut unsure = None;
    for (_, cohort) in Cohort::by_parent(workers) {
        match of_loader(analysis, &cohort) {
            Judgement::Nothing => {}
            Judgement::Undetermined { because } => unsure = Some(because),
            found => return found,
        }
    }
    unsure.map_or(Judgement::Nothing, Judgement::undetermined)
}

fn of_loader(analysis: &Analysis, cohort: &Cohort) -> Judgement {
    // Those that live longest: of workers that come and go each is young.
    let Some(end) = cohort.members.iter().map(|member| member.last_seen).max() else {
        return Judgement::Nothing;
    };
    let last: Vec<_> = cohort
        .members
        .iter()
        .filter(|member| end.since(member.last_seen) <= WORKER_THERE_S)
        .copied()
        .collect();
    let growing: Vec<(&ProcessHistory, LineFit)> =
        last.iter().filter_map(|worker| Some((*worker, grows(worker)?))).collect();
    let Some((most, growth)) = growing.iter().max_by(|a, b| a.1.per_second.total_cmp(&b.1.per_second)) else {
        return Judgement::Nothing;
    };
    if growing.len() * 2 < last.len() {
        return Judgement::Nothing;
    }
    let grown: f64 = growing.iter().map(|(_, growth)| growth.per_second * growth.lasted_s).sum();
    let rate: f64 = growing.iter().map(|(_, growth)| growth.per_second).sum();
    let copies: Vec<Copy> =
        growing.iter().map(|(process, _)| Copy { process, bytes: 0, error: 0, at: end }).collect();
    let starter = starter(analysis, &copies);
    let settings = starter.and_then(|starter| starter.loader.as_ref());
    match settings.map(|settings| settings.persistent_workers) {
        Some(true) => {}
        Some(false) => return Judgement::Nothing,
        None if grown < WARN_BYTES as f64 => return Judgement::Nothing,
        None => {
            return Judgement::undetermined(format!(
                "{} grow by {} a second together; no agent was inside to see whether they are persistent",
                evidence::plural(growing.len() as u64, "loader worker", "loader workers"),
                evidence::bytes(rate as u64)
            ))
        }
    }
    let severity =
        if grown >= WARN_BYTES as f64 || analysis.ran_out { Severity::Warning } else { Severity::Note };
    let sentence = format!(
        "{} of {} grew by {} together in the last {} ({} a second), {} fastest.",
        evidence::plural(growing.len() as u64, "loader worker", "loader workers"),
        evidence::count(last.len() as u64),
        evidence::bytes(grown as u64),
        evidence::seconds(growth.lasted_s),
        evidence::bytes(rate as u64),
        evidence::describe(most),
    );
    let source = evidence::Source::Processes(most.id.pid, "status");
    let mut evidence =
        vec![evidence::number("growth of workers", grown as u64, "bytes", source, end, sentence)];
    let dataset = settings.and_then(|settings| settings.dataset.as_deref()).unwrap_or("the dataset");
    let sentence = format!(
        "The loader over {dataset} has persistent_workers=True; its workers are {} old and retain all of it.",
        evidence::seconds(end.since(most.first_seen))
    );
    let source = starter.map_or("agent".into(), |starter| evidence::Source::Agent(starter.id.pid));
    evidence.push(evidence::text("persistent_workers", "True", source, Some(most.first_seen), sentence));
    evidence.extend(what_grows(most));
    let mut finding =
        of_job(&RULE, severity, Proof::Estimated, evidence, &analysis.remedy_context_of(starter));
    finding.process = Some(evidence::process_ref(most));
    Judgement::one(finding)
}

/// A worker that rises to its end, for most of its life.
fn grows(worker: &ProcessHistory) -> Option<LineFit> {
    let Trend::Growing(growth) = trend_of(&worker.anonymous, worker.last_seen) else { return None };
    let life = worker.last_seen.since(worker.first_seen);
    let much = growth.per_second * growth.lasted_s >= WORKER_BYTES;
    (growth.ongoing && much && growth.lasted_s >= WORKER_LASTED_S.max(WORKER_LASTED * life)).then_some(growth)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Find the dataset's lines that retain memory",
            "import tracemalloc  # in the dataset's __getitem__, in the worker\n\
                      if not tracemalloc.is_tracing():\n    tracemalloc.start()\n\
                      if index % 1000 == 0:\n    print(*tracemalloc.take_snapshot().statistics(\"lineno\")[:5], sep=\"\\n\")",
        ),
        Fix::new(
            "Bound a cache",
            "functools.lru_cache(maxsize=1000)  # instead of a dict that grows with every sample",
        ),
        Fix::new(
            "Or end the workers after each epoch, with all they retain",
            context.loader("persistent_workers=False"),
        )
        .only(Place::Loader),
    ]
}
