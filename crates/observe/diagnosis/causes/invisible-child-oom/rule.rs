//! Does a run show invisible-child-oom? page.md says what that is, and how it differs from its look-alikes.

use super::memcg_oom_kill;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::{Judgement, Rule};
use ullage_model::{Ending, Fix, Place};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let victims: Vec<_> = analysis.oom_victims.iter().filter(|victim| victim.of_cgroup()).collect();
    let all_unnoticed = victims.iter().all(|victim| analysis.unnoticed(victim));
    let Some(victim) = victims.first().filter(|_| all_unnoticed) else { return Judgement::Nothing };
    let mut finding = memcg_oom_kill::killed(analysis, &RULE, victim, victims.len());
    let main = analysis.main().and_then(|main| analysis.timeline.process(main));
    let after = match main.and_then(|main| main.ended) {
        Some((at, Ending::Exited(code), _)) => {
            format!(
                "The command ran on for {} and exited with status {code}",
                evidence::seconds(at.since(victim.at))
            )
        }
        Some((at, Ending::Signaled(signal), _)) => {
            format!(
                "The command ran on for {} until {} killed it",
                evidence::seconds(at.since(victim.at)),
                evidence::signal_name(signal)
            )
        }
        _ => {
            format!(
                "The command was still running {} later",
                evidence::seconds(analysis.timeline.end().since(victim.at))
            )
        }
    };
    let sentence = format!("{after}; no process failed in the ten seconds after the kill.");
    finding.evidence.push(evidence::text(
        "COMMAND",
        "lived on",
        "how processes ended",
        Some(victim.at),
        sentence,
    ));
    Judgement::one(finding)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![
        Fix::new(
            "Fail when a child fails",
            "p.join()\nif p.exitcode != 0:\n    raise RuntimeError(f\"{p.name} ended with {p.exitcode}\")",
        ),
        Fix::new("Let the loader fail when it waits for a lost worker", context.loader("timeout=120"))
            .only(Place::Loader),
    ];
    if let (true, Some(path)) = (context.is_root(), context.path.as_deref().filter(|path| *path != "/")) {
        fixes.push(Fix::new(
            "On cgroup v2: let the kernel kill the whole group instead of one process",
            format!("echo 1 > /sys/fs/cgroup{path}/memory.oom.group"),
        ));
    }
    fixes
}
