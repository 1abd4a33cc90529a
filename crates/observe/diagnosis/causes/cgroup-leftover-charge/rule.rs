//! # cgroup-leftover-charge
//!
//! ## What it does
//! Says that the job began in a cgroup that earlier ones had filled: with page cache, or with files in a tmpfs.
//!
//! ## Why it happens
//! A page counts against the cgroup of whoever touched it first, and goes on to do so when that process has ended. A
//! second job in the same pod, container or Slurm step starts with the cache, and the left-over /dev/shm files, of the
//! first. So two runs of one program show different numbers.
//!
//! ## How it is told apart
//! It is there at the first reading, before the job has done anything, and it is in the lines for files, not in anonymous
//! memory. Only groups with a limit are looked at: in others everything of the machine is counted.
//!
//! ## Known problems
//! Other processes that live in the same cgroup at the same time count there as well; their files cannot be told from
//! left-over ones.
//!
//! ## Example
//! The first run shows 40 GiB of memory, the second, identical one 5 GiB
//!
//! ## Remedy
//! Compare anonymous and shared memory between runs, not the whole. Remove files of a tmpfs that nobody uses.
//!
//! ## References
//! - <https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-ownership>

use crate::analysis::oom::{limiting, own_groups};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::machine::{LEFTOVER_READ_BY, LEFTOVER_SHARE};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Severity, Status};

pub(super) const RULE: Rule = Rule {
    id: "cgroup-leftover-charge",
    title: "Memory charged to the wrong or a dead cgroup (page cache/tmpfs of earlier jobs)",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

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
            "The cgroup {} held {} before the job did anything: {} of page cache and {} of shared memory (/dev/shm and the like), of the {} that its limit allows.",
            group.path(),
            evidence::bytes(left as u64),
            evidence::bytes(cache as u64),
            evidence::bytes(shared as u64),
            evidence::bytes(limit)
        );
        let source = format!("memory.stat of {}", group.path());
        let met = evidence::number("memory at the start", left as u64, "bytes", &source, at, sentence);
        // Cache is dropped when it is in the way; files of a tmpfs are not.
        let in_the_way = shared >= limit as f64 * LEFTOVER_SHARE && !analysis.ended_well();
        let killed = analysis.oom_victims.iter().any(|victim| victim.of_cgroup());
        let severity = if in_the_way && killed { Severity::Warning } else { Severity::Note };
        let evidence = vec![evidence::with_limit(met, limit)];
        return Judgement::one(of_job(
            &RULE,
            severity,
            (Status::Supported, 0.85),
            evidence,
            &analysis.remedy_context(None),
        ));
    }
    Judgement::Nothing
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix {
            title: "See the files of /dev/shm that nobody uses, and remove them one by one".into(),
            command: "ullage check --clean".into(),
            automatic: None,
        },
        Fix {
            title: "Before two runs are compared: let the kernel drop the cache of the own cgroup (v2, kernel 5.19 or newer)"
                .into(),
            command: "echo 10G > /sys/fs/cgroup/memory.reclaim".into(),
            automatic: None,
        },
    ]
}
