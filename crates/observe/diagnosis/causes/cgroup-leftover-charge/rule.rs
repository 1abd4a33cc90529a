//! Does a run show cgroup-leftover-charge? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::oom::{limiting, own_groups};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::machine::{LEFTOVER_READ_BY, LEFTOVER_SHARE};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    for own in own_groups(analysis) {
        let Some((group, limit)) = limiting(analysis, own) else { continue };
        let (Some((at, cache)), Some((_, shared))) = (group.cache.first(), group.shared.first()) else {
            continue;
        };
        let left = cache + shared;
        if at > LEFTOVER_READ_BY || left < limit as f64 * LEFTOVER_SHARE {
            continue;
        }
        let sentence = format!(
            "The cgroup {} held {} of {} before the job began: {} page cache, {} shared memory.",
            group.path(),
            evidence::bytes(left as u64),
            evidence::bytes(limit),
            evidence::bytes(cache as u64),
            evidence::bytes(shared as u64)
        );
        let source = evidence::Source::Cgroup("memory.stat", group.path().to_owned());
        let met = evidence::number("memory at the start", left as u64, "bytes", source, at, sentence);
        // Cache is dropped when it is in the way; files of a tmpfs are not.
        let in_the_way = shared >= limit as f64 * LEFTOVER_SHARE && !analysis.ended_well();
        let killed = analysis.oom_victims.iter().any(|victim| victim.of_cgroup());
        let severity = if in_the_way && killed { Severity::Warning } else { Severity::Note };
        let evidence = vec![evidence::with_limit(met, limit)];
        return Judgement::one(of_job(
            &RULE,
            severity,
            Proof::Estimated,
            evidence,
            &analysis.remedy_context(None),
        ));
    }
    Judgement::Nothing
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("List the files of /dev/shm that no process uses, and remove them", "ullage check --clean"),
        Fix::new(
            "Before you compare two runs: drop the cgroup's page cache (v2, kernel 5.19 or newer)",
            "echo 10G > /sys/fs/cgroup/memory.reclaim",
        ),
    ]
}
