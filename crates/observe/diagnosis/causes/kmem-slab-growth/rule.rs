//! Does a run show kmem-slab-growth? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::oom::{limit as limit_of, limiting, own_groups};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::machine::{SLAB_BYTES, SLAB_LIMIT_PART, SLAB_LITTLE_BYTES};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let killed = analysis.oom_victims.iter().find(|victim| victim.of_cgroup());
    let candidates =
        own_groups(analysis).into_iter().map(|own| limiting(analysis, own).map_or(own, |(group, _)| group));
    for group in candidates {
        let (Some((at, peak)), Some((_, first))) = (group.kernel.peak(), group.kernel.first()) else {
            continue;
        };
        let limit = limit_of(group);
        let grown = peak - first;
        let large =
            limit.is_some_and(|limit| peak >= limit as f64 / SLAB_LIMIT_PART) && grown >= SLAB_LITTLE_BYTES;
        if !large && grown < SLAB_BYTES {
            continue;
        }
        let of = limit.map_or(String::new(), |limit| format!(" of {}", evidence::bytes(limit)));
        let sentence = format!(
            "The kernel itself held {}{of} in the cgroup {}, {} more than at the start.",
            evidence::bytes(peak as u64),
            group.path(),
            evidence::bytes(grown as u64)
        );
        let source = evidence::Source::Cgroup("memory.stat", group.path().to_owned());
        let met = evidence::number("kernel memory", peak as u64, "bytes", source, at, sentence);
        let mut evidence = vec![match limit {
            Some(limit) => evidence::with_limit(met, limit),
            None => met,
        }];
        if let Some((at, tables)) = analysis.timeline.job_totals().page_tables.at_or_before(at) {
            let part = if tables >= peak / 2.0 { "most of that" } else { "a small part of that" };
            let sentence = format!(
                "Page tables were {}, {part}; the rest is file names, inodes and sockets.",
                evidence::bytes(tables as u64)
            );
            evidence.push(evidence::number(
                "page tables",
                tables as u64,
                "bytes",
                "/proc/PID/status",
                at,
                sentence,
            ));
        }
        let severity = match killed {
            Some(_) if large => Severity::Warning,
            _ => Severity::Note,
        };
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

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![Fix::new(
        "Pack the samples into a few large files: the kernel then caches few names",
        "tar --create --file=shard-0000.tar --directory=samples .",
    )];
    if context.is_root() {
        fixes.push(Fix::new(
            "Identify it: this releases names and inodes, not page tables",
            "slabtop -o | head -15; echo 2 > /proc/sys/vm/drop_caches",
        ));
    }
    fixes
}
