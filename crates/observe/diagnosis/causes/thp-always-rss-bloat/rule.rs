//! Does a run show thp-always-rss-bloat? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::oom::{limiting, own_groups};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::limits::NEAR_LIMIT;
use crate::policy::sizes::NOTE_BYTES;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// Whether huge pages are most of what the job had as it met its limit: then that much came of them for each touch.
pub(super) fn is_reported(analysis: &Analysis) -> bool {
    matches!(judge(analysis), Judgement::Found(_))
}

fn judge(analysis: &Analysis) -> Judgement {
    let Some(mode) = analysis.machine().transparent_hugepages.as_known() else { return Judgement::Nothing };
    let killed = analysis.oom_victims.iter().any(|victim| victim.of_cgroup());
    for own in own_groups(analysis) {
        let Some((group, limit)) = limiting(analysis, own) else { continue };
        let Some((at, huge, anonymous)) = group.most_huge else { continue };
        let near = group.working_set.peak().is_some_and(|(_, peak)| peak >= limit as f64 * NEAR_LIMIT);
        if huge < NOTE_BYTES || huge < anonymous / 2 || !(killed || near) {
            continue;
        }
        let sentence = format!(
            "{} of {} in the cgroup {} is in transparent huge pages of 2 MiB, used or not (mode {mode}).",
            evidence::bytes(huge),
            evidence::bytes(anonymous),
            group.path()
        );
        let source = evidence::Source::Cgroup("memory.stat", group.path().to_owned());
        let met = evidence::number("memory in huge pages", huge, "bytes", source, at, sentence);
        // Where the program asks for them itself, as numpy does for its arrays, it mostly uses them.
        let severity = if killed && mode == "always" { Severity::Warning } else { Severity::Note };
        let evidence = vec![evidence::with_limit(met, anonymous)];
        return Judgement::one(of_job(
            &RULE,
            severity,
            Proof::Consistent,
            evidence,
            &analysis.remedy_context(None),
        ));
    }
    Judgement::Nothing
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let command = context.typed();
    let mut fixes = vec![Fix::new(
        "Confirm it: run this job without huge pages",
        format!(
            "python -c 'import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])' {command}"
        ),
    )];
    if context.is_root() {
        fixes.push(Fix::new(
            "Then use them only for programs that ask for them",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ));
    }
    fixes
}
