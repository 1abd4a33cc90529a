//! Does a run show shmem-counts-twice-limits? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::came::Came;
use crate::analysis::oom::{limiting, Victim};
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::{CgroupHistory, Series};
use crate::policy::machine::UNBOUNDED_PART;
use crate::policy::sizes::{MOST, WARN_PART};
use crate::rule::finding::of_job;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{At, FilesystemUse, Fix, Place, Proof, Severity};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    for victim in analysis.oom_victims.iter().filter(|victim| victim.of_cgroup()) {
        let Some((group, limit)) = victim.group.and_then(|group| limiting(analysis, group)) else { continue };
        let around = |series: &Series| series.highest_around(victim.last_read_before(), victim.at);
        let Some((at, shared)) = around(&group.shared) else { continue };
        let anonymous = group.last.memory.as_known().and_then(|memory| memory.parts.known());
        let anonymous = anonymous.map_or(0, |parts| parts.anonymous.0);
        let is_most = shared >= MOST * limit as f64 && shared >= anonymous as f64;
        if !is_most && !is_most_of_what_came(analysis, group, shared, limit, victim) {
            continue;
        }
        let sentence = format!(
            "The cgroup {} held {} of {} as shared memory {}; killing its writer does not free it.",
            group.path(),
            evidence::bytes(shared as u64),
            evidence::bytes(limit),
            when(at, victim.at)
        );
        let source = evidence::Source::Cgroup("memory.stat", group.path().to_owned());
        let met = evidence::number("shared memory", shared as u64, "bytes", source, at, sentence);
        let mut evidence = vec![evidence::with_limit(met, limit)];
        if let Some(place) = analysis.timeline.filesystems(FilesystemUse::Shm).next() {
            let used = around(&place.used).map_or(place.last.used.0, |(_, used)| used as u64);
            let size = place.last.size.at();
            let of =
                size.map_or("no size limit".into(), |size| format!("a size of {}", evidence::bytes(size)));
            let sentence = format!(
                "{} held {} of that; it has {of}, so the memory limit stops it first.",
                place.last.path,
                evidence::bytes(used)
            );
            if size.is_none_or(|size| size > used.saturating_add(used / UNBOUNDED_PART)) {
                let source = evidence::Source::Filesystem(place.last.path.clone());
                evidence.push(evidence::number("/dev/shm in use", used, "bytes", source, at, sentence));
            }
        }
        // Its growth comes before the kill, also where the reading that shows it does not.
        let crossed = group.shared.points().find(|(_, bytes)| *bytes >= MOST * shared);
        let began = match crossed {
            Some((at, _)) if at < victim.at => at,
            _ => group.shared.at_or_before(At(victim.at.0.saturating_sub(1))).map_or(At(0), |(at, _)| at),
        };
        let severity = if analysis.ended_well() { Severity::Warning } else { Severity::Fatal };
        let context = RemedyContext { bytes: Some(limit), ..analysis.remedy_context(None) };
        let mut finding = of_job(&RULE, severity, Proof::SeenOutside, evidence, &context);
        finding.process = victim.process.map(evidence::process_ref);
        finding.at = Some(began);
        return Judgement::one(finding);
    }
    Judgement::Nothing
}

/// What was there from the start fills the rest of the limit, and was no reason until the shared memory came.
fn is_most_of_what_came(
    analysis: &Analysis,
    group: &CgroupHistory,
    shared: f64,
    limit: u64,
    victim: &Victim,
) -> bool {
    let all = Came::of(analysis, Some(group), Some(victim.last_read_before()));
    let came = shared - all.before(&group.shared);
    came * WARN_PART as f64 >= limit as f64 && came > MOST * all.until_full(limit)
}

fn when(at: At, kill: At) -> String {
    let age = kill.since(at);
    if age >= 0.0 {
        format!("{} before the kill", evidence::seconds(age))
    } else {
        format!("{} after the kill", evidence::seconds(-age))
    }
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    // A quarter of the limit, where that is known.
    let quarter = context.bytes.map(|bytes| (bytes >> 30).max(1));
    let size = |times: u64| {
        quarter.map_or_else(|| "SIZE".to_owned(), |gib| format!("{}g", gib.saturating_mul(times)))
    };
    vec![
        Fix::new(
            "List what fills it; what no process uses counts until it is deleted",
            "ls -lS /dev/shm; ullage check --clean",
        ),
        Fix::new(
            "Start the container with more memory than its /dev/shm: a full one is an error, not a kill",
            format!("docker run --memory={} --shm-size={} IMAGE", size(4), size(1)),
        )
        .only(Place::Container),
        sharing::fewer_batches(context),
    ]
}
