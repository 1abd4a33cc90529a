//! Does a run show unaccounted-kernel-memory? page.md says what that is, and how it differs from its look-alikes.

use super::hugetlb_reserved::ran_out;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::machine::{UNOWNED_BYTES, UNOWNED_SHARE};
use crate::rule::finding::of_job;
use crate::rule::{Judgement, Rule};
use ullage_model::{Fix, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let host = analysis.timeline.host();
    let (Some((at, unowned)), Some(memory)) = (host.unowned.peak(), host.last.memory.known()) else {
        return Judgement::Nothing;
    };
    let total = memory.total.0;
    if unowned < total as f64 * UNOWNED_SHARE || unowned < UNOWNED_BYTES {
        return Judgement::Nothing;
    }
    let sentence = format!(
        "{} of {} in use belong to no process, cache or kernel table. Drivers, a VM balloon or ZFS hold such memory.",
        evidence::bytes(unowned as u64),
        evidence::bytes(total)
    );
    let met =
        evidence::number("memory without owner", unowned as u64, "bytes", "/proc/meminfo", at, sentence);
    let out = ran_out(analysis, total).is_some();
    let severity = if out && !analysis.ended_well() { Severity::Warning } else { Severity::Note };
    Judgement::one(of_job(
        &RULE,
        severity,
        Proof::Estimated,
        vec![evidence::with_limit(met, total)],
        &analysis.remedy_context(None),
    ))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![Fix::new(
        "Check for ZFS and for a balloon",
        "grep ^size /proc/spl/kstat/zfs/arcstats; lsmod | grep -i balloon",
    )];
    if context.is_root() {
        fixes.push(Fix::new(
            "Limit ZFS's cache to 8 GiB",
            "echo 8589934592 > /sys/module/zfs/parameters/zfs_arc_max",
        ));
    }
    fixes
}
