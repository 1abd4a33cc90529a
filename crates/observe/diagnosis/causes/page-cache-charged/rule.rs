//! Does a run show page-cache-charged? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::oom::{limiting, own_groups};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::limits::NEAR_LIMIT;
use crate::policy::machine::CACHE_STAYS;
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    for own in own_groups(analysis) {
        let Some((group, limit)) = limiting(analysis, own) else { continue };
        let killed = [own, group].iter().any(|group| group.oom_kills.growth().unwrap_or(0) > 0);
        let Some(hits) = group.limit_hits.growth().filter(|hits| *hits > 0) else { continue };
        let peak = |series: &crate::Series| series.peak().map_or(0.0, |(_, peak)| peak);
        let whole = limit as f64;
        let Some((at, cache)) = group.cache.peak() else { continue };
        let stays = peak(&group.working_set);
        if killed
            || cache < whole / 2.0
            || stays > whole * CACHE_STAYS
            || peak(&group.memory) < whole * NEAR_LIMIT
        {
            continue;
        }
        let sentence = format!(
            "The cgroup {} held {} of {} as droppable page cache; it met its limit {}.",
            group.path(),
            evidence::bytes(cache as u64),
            evidence::bytes(limit),
            evidence::plural(hits, "time", "times")
        );
        let source = evidence::Source::Cgroup("memory.stat", group.path().to_owned());
        let met = evidence::number("page cache", cache as u64, "bytes", source.clone(), at, sentence);
        let sentence = format!(
            "Memory other than cache stayed below {}: the limit is safe.",
            evidence::bytes(stays as u64)
        );
        let rest =
            evidence::number("memory in use without cache", stays as u64, "bytes", source, at, sentence);
        let evidence = vec![evidence::with_limit(met, limit), evidence::with_limit(rest, limit)];
        return Judgement::one(of_job(
            &RULE,
            Severity::Note,
            Proof::SeenOutside,
            evidence,
            &analysis.remedy_context(None),
        ));
    }
    Judgement::Nothing
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new(
            "Watch these lines instead of memory.current",
            "grep -E '^(anon|shmem|kernel) ' /sys/fs/cgroup/memory.stat",
        ),
        Fix::new(
            "Drop the pages of files that you read once",
            "os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)",
        ),
    ]
}
