//! Does a run show shm-stale-files? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::space;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::history::segments::{bytes, in_shm, total, Stale};
use crate::policy::limits::KILL_SLACK_S;
use crate::policy::machine::{STALE_NOTE_BYTES, STALE_READ_BY, STALE_SHARE};
use crate::rule::finding::{by_failure, finding, of_job};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{
    Creator, Ending, Evidence, FilesystemUse, Finding, Fix, Maker, Measured, Proof, Segment, Severity,
};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    match by_failure(analysis, |failure| Ok(left_by_killed(analysis, failure))) {
        Judgement::Nothing => from_before(analysis),
        found => found,
    }
}

/// Files that processes of this very run left, because they were killed before and could not remove them.
fn left_by_killed(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let reading = analysis.timeline.segments.last.as_ref()?;
    let (_, size) = full(analysis, failure)?;
    let killed = |segment: &&Segment| {
        let Measured::Known(Creator { maker: Maker::Process(maker), .. }) = segment.creator else {
            return false;
        };
        let ended = analysis.timeline.process(maker).and_then(|maker| maker.ended);
        // Who is killed with the one that failed left nothing that it could have met.
        ended.is_some_and(|(at, how, _)| {
            !matches!(how, Ending::Exited(_)) && failure.at.since(at) > KILL_SLACK_S
        })
    };
    let mut left: Vec<&Segment> =
        in_shm(reading).filter(|one| !one.before && one.unused()).filter(killed).collect();
    left.sort_by_key(|segment| std::cmp::Reverse(bytes(segment)));
    let total = total(left.iter().copied());
    if (total.bytes as f64) < size as f64 * STALE_SHARE {
        return None;
    }
    let names: Vec<&str> = left.iter().take(3).map(|segment| segment.name.as_str()).collect();
    let text = format!(
        "/dev/shm holds {} of its {} in {} of this run that nothing uses: who made them was killed, and could not remove them (largest: {}).",
        evidence::bytes(total.bytes),
        evidence::bytes(size),
        evidence::plural(total.count, "file", "files"),
        names.join(", ")
    );
    let held = evidence::number("left-over files", total.bytes, "bytes", "/dev/shm", reading.at, text);
    let mut evidence = vec![evidence::with_limit(held, size)];
    evidence.extend(sharing::exception_sentence(failure));
    evidence.extend(space::bus_error_sentence(failure).filter(|_| space::is_page_refused(failure)));
    let context = analysis.remedy_context(Some(failure));
    let mut finding = finding(analysis, &RULE, failure, Proof::SeenOutside, evidence, &context);
    if total.bytes >= size / 2 {
        finding.explains = lack_of_room();
        finding.beyond_its_process = true;
    }
    finding.fixes.insert(
        0,
        Fix::new(
            "End them so that they can remove what they made: SIGTERM, and SIGKILL only for what stays",
            "kill -- -$server; sleep 5; kill -9 -- -$server 2>/dev/null",
        ),
    );
    Some(finding)
}

fn from_before(analysis: &Analysis) -> Judgement {
    let Some(stale) = analysis.timeline.segments.stale().filter(|stale| stale.count > 0) else {
        return by_failure(analysis, |failure| Ok(filled_before(analysis, failure)));
    };
    match by_failure(analysis, |failure| Ok(filled(analysis, failure, &stale))) {
        Judgement::Nothing if stale.bytes >= STALE_NOTE_BYTES && stale.makers_gone >= STALE_NOTE_BYTES => {
            let evidence = vec![sentence(&stale, None)];
            Judgement::one(of_job(
                &RULE,
                Severity::Note,
                known(&stale),
                evidence,
                &analysis.remedy_context(None),
            ))
        }
        judgement => judgement,
    }
}

/// Bytes in use and size of a /dev/shm that this failure met full.
fn full(analysis: &Analysis, failure: &Failure) -> Option<(u64, u64)> {
    let no_space = space::is_no_space(failure) && space::about_shm(failure);
    let by_hand = space::is_page_refused(failure) || failure.unexplained_end();
    let (used, size) = match failure.counts().and_then(|counts| counts.shm_used.zip(counts.shm_size)) {
        Some(counted) => counted,
        None => {
            let (_, _, used, size) = space::fullest(analysis, &[FilesystemUse::Shm], failure, false)?;
            (used, size)
        }
    };
    let full = no_space || (by_hand && space::is_full(used, size));
    (full && size > 0).then_some((used, size))
}

fn filled(analysis: &Analysis, failure: &Failure, stale: &Stale) -> Option<Finding> {
    let (_, size) = full(analysis, failure)?;
    if (stale.bytes as f64) < size as f64 * STALE_SHARE {
        return None;
    }
    let mut evidence = vec![sentence(stale, Some(size))];
    evidence.extend(sharing::exception_sentence(failure));
    evidence.extend(space::bus_error_sentence(failure).filter(|_| space::is_page_refused(failure)));
    let mut finding =
        finding(analysis, &RULE, failure, known(stale), evidence, &analysis.remedy_context(Some(failure)));
    if stale.makers_gone >= stale.bytes / 2 || stale.bytes >= size / 2 {
        // They were there first; of few files of which little is known that says nothing.
        finding.explains = lack_of_room();
        finding.beyond_its_process = true;
    }
    Some(finding)
}

/// The files were never listed: how much was in use when the job began is known all the same.
fn filled_before(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let (at, before) = analysis.timeline.filesystems(FilesystemUse::Shm).next()?.used.first()?;
    let (used, size) = full(analysis, failure)?;
    if at > STALE_READ_BY || before < size as f64 * STALE_SHARE || before > used as f64 {
        return None;
    }
    let sentence = format!(
        "/dev/shm already held {} of {} when the job began: files of other runs.",
        evidence::bytes(before as u64),
        evidence::bytes(size)
    );
    let met =
        evidence::number("in use before the job", before as u64, "bytes", "statvfs /dev/shm", at, sentence);
    let mut evidence = vec![evidence::with_limit(met, size)];
    evidence.extend(sharing::exception_sentence(failure));
    evidence.extend(space::bus_error_sentence(failure).filter(|_| space::is_page_refused(failure)));
    let known = Proof::Estimated;
    let mut finding =
        finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure)));
    if before >= size as f64 / 2.0 {
        finding.explains = lack_of_room();
        finding.beyond_its_process = true;
    }
    Some(finding)
}

/// What a /dev/shm without room shows itself as.
fn lack_of_room() -> Vec<String> {
    ["shm-full-bytes", "nccl-shm-segments", "ray-object-store"].map(str::to_owned).into()
}

fn known(stale: &Stale) -> Proof {
    if stale.makers_gone >= stale.bytes / 2 {
        Proof::SeenOutside
    } else {
        Proof::Estimated
    }
}

fn sentence(stale: &Stale, size: Option<u64>) -> Evidence {
    let of = size.map_or(String::new(), |size| format!(" of its {}", evidence::bytes(size)));
    let gone = if stale.makers_gone >= stale.bytes / 2 {
        "; their creator has exited"
    } else {
        "; their creator is unknown, so another job may use them"
    };
    let text = format!(
        "/dev/shm holds {} in {} from before this run, unused by it{of}{gone} (largest: {}).",
        evidence::bytes(stale.bytes),
        evidence::plural(stale.count, "file", "files"),
        stale.names.join(", ")
    );
    let evidence = evidence::number("left-over files", stale.bytes, "bytes", "/dev/shm", stale.at, text);
    match size {
        Some(size) => evidence::with_limit(evidence, size),
        None => evidence,
    }
}

fn fixes(_setting: &RemedyContext) -> Vec<Fix> {
    vec![
        Fix::new("List files that no process uses, and remove them after asking", "ullage check --clean"),
        Fix::new(
            "By hand, if fuser shows no process",
            "fuser -v /dev/shm/torch_* /dev/shm/psm_*; rm /dev/shm/torch_* /dev/shm/psm_*",
        ),
        Fix::new(
            "Let torch unlink its files at once, so that none stays",
            "torch.multiprocessing.set_sharing_strategy(\"file_descriptor\")",
        ),
    ]
}
