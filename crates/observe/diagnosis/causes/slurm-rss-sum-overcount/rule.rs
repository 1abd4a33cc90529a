//! Does a run show slurm-rss-sum-overcount? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::given::{MIB, SIGKILL, SIGTERM};
use crate::policy::limits::NEAR_LIMIT;
use crate::policy::machine::SLURM_WINDOW_S;
use crate::rule::finding::{by_failure, finding};
use crate::rule::{Judgement, Rule};
use ullage_model::{At, Ending, Finding, Fix, OutcomeKind, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let Some(asked) = asked(analysis) else { return Judgement::Nothing };
    let killed = !analysis.oom_victims.is_empty() || analysis.plain_outcome().kind == OutcomeKind::Budget;
    if killed {
        return Judgement::Nothing;
    }
    by_failure(analysis, |failure| Ok(ended(analysis, failure, asked)))
}

/// Bytes that the job may have on this node. Slurm's figures are MiB.
fn asked(analysis: &Analysis) -> Option<u64> {
    let number = |name: &str| analysis.facts.environment.get(name)?.parse::<u64>().ok();
    let mib = match number("SLURM_MEM_PER_NODE") {
        Some(mib) => mib,
        None => number("SLURM_MEM_PER_CPU")?.saturating_mul(number("SLURM_CPUS_ON_NODE")?),
    };
    // 0 is the whole node.
    (mib > 0).then(|| mib.saturating_mul(MIB))
}

fn ended(analysis: &Analysis, failure: &Failure, asked: u64) -> Option<Finding> {
    if failure.follows || !matches!(failure.ending, Some(Ending::Signaled(SIGKILL | SIGTERM))) {
        return None;
    }
    let from = At::from_seconds(failure.at.seconds() - SLURM_WINDOW_S);
    let (at, sum) = analysis.timeline.job_totals().resident.peak_between(from, failure.at)?;
    let (_, held) = analysis.timeline.tree.peak_between(from, failure.at)?;
    if sum <= asked as f64 || held > asked as f64 * NEAR_LIMIT {
        return None;
    }
    let sentence = format!(
        "The resident sizes add up to {}, above the {} requested from Slurm; the job held {}.",
        evidence::bytes(sum as u64),
        evidence::bytes(asked),
        evidence::bytes(held as u64)
    );
    let met =
        evidence::number("sum of resident sizes", sum as u64, "bytes", "/proc/PID/status", at, sentence);
    let sentence = format!(
        "{} was killed by a signal, and the kernel counted no OOM kill.",
        failure
            .process
            .map_or_else(|| "A process".into(), |process| evidence::capital(&evidence::describe(process)))
    );
    let signal =
        evidence::text("signal", "SIGKILL or SIGTERM", "how the process ended", Some(failure.at), sentence);
    let context = RemedyContext { bytes: Some(sum as u64), ..analysis.remedy_context(Some(failure)) };
    let evidence = vec![evidence::with_limit(met, asked), signal];
    Some(finding(analysis, &RULE, failure, Proof::Consistent, evidence, &context))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let size = context.bytes.map_or_else(|| "SIZE".to_owned(), |bytes| format!("{}G", (bytes >> 30) + 1));
    vec![
        Fix::new("Confirm it: read what slurmd counted", "sacct -j \"$SLURM_JOB_ID\" -o JobID,State,MaxRSS,ReqMem"),
        Fix::new(
            "Until Slurm counts otherwise: request the sum",
            format!("sbatch --mem={size} train.sh"),
        )
        .only(Place::Slurm),
        Fix::new(
            "For administrators, in slurm.conf: count shared pages once, and let the kernel enforce the limit",
            "JobAcctGatherParams=UsePss\n# cgroup.conf: ConstrainRAMSpace=yes",
        ),
    ]
}
