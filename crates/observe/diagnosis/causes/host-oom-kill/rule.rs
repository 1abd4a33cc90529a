//! Does a run show host-oom-kill? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::given::SIGKILL;
use crate::policy::limits::HOST_LEFT;
use crate::rule::finding::{logged, of_victim};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Ending, Evidence, Fix, OutcomeKind};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let Some(victim) = analysis.oom_victims.iter().find(|victim| victim.host) else {
        return suspected(analysis);
    };
    let log = logged(victim, |line| {
        format!(
            "The machine ran out of memory and the kernel killed {} (pid {}): {} anonymous, {} shared.",
            line.task,
            line.pid,
            evidence::bytes(line.anonymous),
            evidence::bytes(line.shared)
        )
    });
    let mut evidence: Vec<Evidence> = log.into_iter().collect();
    if let Some((at, available)) = analysis.timeline.host().available.at_or_before(victim.at) {
        let total = analysis.machine().memory_total.known().map_or(0, |bytes| bytes.0);
        let sentence = format!(
            "The machine had {} of {} available, {} before the kill.",
            evidence::bytes(available as u64),
            evidence::bytes(total),
            evidence::seconds(victim.at.since(at))
        );
        evidence.push(evidence::with_limit(
            evidence::number("available memory", available as u64, "bytes", "/proc/meminfo", at, sentence),
            total,
        ));
    }
    let context = RemedyContext {
        bytes: analysis.machine().memory_total.known().map(|bytes| bytes.0),
        ..analysis.remedy_context(None)
    };
    Judgement::one(of_victim(analysis, &RULE, victim, evidence, &context))
}

/// SIGKILL while the machine had next to nothing left, and no line of the kernel about it.
fn suspected(analysis: &Analysis) -> Judgement {
    let killed =
        analysis.timeline.endings().into_iter().find(|(_, _, ending)| *ending == Ending::Signaled(SIGKILL));
    let Some((at, process, _)) = killed else { return Judgement::Nothing };
    let explained = !analysis.oom_victims.is_empty() || analysis.plain_outcome().kind == OutcomeKind::Budget;
    let total = analysis.machine().memory_total.known().map_or(0, |bytes| bytes.0);
    let Some((read, available)) = analysis.timeline.host().available.at_or_before(at) else {
        return Judgement::Nothing;
    };
    if explained || total == 0 || available > total as f64 * HOST_LEFT {
        return Judgement::Nothing;
    }
    Judgement::undetermined(format!(
        "{} was killed by SIGKILL, {} after the machine had {} available; the kernel log shows no such kill",
        evidence::describe(process),
        evidence::seconds(at.since(read)),
        evidence::bytes(available as u64)
    ))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    vec![sharing::budget(context), sharing::fewer_batches(context)]
}
