//! Does a run show shm-full-bytes? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::space;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::limits::{reaches, NEAR_LIMIT};
use crate::policy::machine::{FILLS_AT_ONCE_BYTES, FILLS_AT_ONCE_PART};
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{FilesystemUse, Finding, Fix, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    by_failure(analysis, |failure| {
        if space::is_no_space(failure) && space::about_shm_as_read(analysis, failure) {
            Ok(reported(analysis, failure))
        } else if space::is_page_refused(failure) || failure.unexplained_end() {
            read(analysis, failure)
        } else {
            Ok(None)
        }
    })
}

fn reported(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let counts = failure.counts()?;
    let inodes_full = matches!((counts.shm_inodes_used, counts.shm_inodes), (Some(used), Some(all)) if all > 0 && used.saturating_add(1) >= all);
    // Reserving pages fails for bytes, creating the object for inodes.
    if inodes_full && !failure.text().contains("unable to allocate shared memory(shm)") {
        return None;
    }
    let room = matches!((counts.shm_used, counts.shm_size), (Some(used), Some(size)) if !reaches(NEAR_LIMIT, used, size));
    if room && space::at_creation(failure) {
        return None;
    }
    let mut evidence = Vec::new();
    let mut known = Proof::InPart;
    let read = space::fullest(analysis, &[FilesystemUse::Shm], failure, false);
    let counted = counts.shm_used.zip(counts.shm_size).filter(|_| space::about_shm(failure));
    if let Some((used, size)) = counted {
        // What was reserved in vain is free again; what is left is less than one such request.
        if size > 0 && used >= size / 2 && space::names_shm(failure) {
            known = Proof::SeenInside;
        }
        let sentence = format!(
            "/dev/shm had {} of {} in use at the exception; the next segment did not fit.",
            evidence::bytes(used),
            evidence::bytes(size)
        );
        let met =
            evidence::number("/dev/shm bytes", used, "bytes", failure.agent_source(), failure.at, sentence);
        evidence.push(evidence::with_limit(met, size));
    } else if let Some((history, at, used, size)) = read {
        evidence.push(space::reading(&history.last.path, "bytes", used, size, at, failure.at));
    }
    evidence.extend(sharing::exception_sentence(failure));
    evidence.extend(in_flight(failure));
    Some(finding(analysis, &RULE, failure, known, evidence, &context(analysis, failure)))
}

fn read(analysis: &Analysis, failure: &Failure) -> Result<Option<Finding>, String> {
    let bus = space::is_page_refused(failure);
    let Some((history, at, used, size)) = space::fullest(analysis, &[FilesystemUse::Shm], failure, false)
    else {
        return if bus {
            Err("a process was killed by SIGBUS, and /dev/shm could not be read".into())
        } else {
            Ok(None)
        };
    };
    if space::is_full(used, size) {
        let mut evidence = vec![space::reading(&history.last.path, "bytes", used, size, at, failure.at)];
        evidence.extend(space::bus_error_sentence(failure).filter(|_| bus));
        let known = Proof::ReadNearLimit;
        return Ok(Some(finding(analysis, &RULE, failure, known, evidence, &context(analysis, failure))));
    }
    let subject = failure.process.map_or_else(|| "a process".into(), evidence::describe);
    let last = format!("/dev/shm last had {} of {} in use", evidence::bytes(used), evidence::bytes(size));
    if bus {
        return Err(format!("{subject} was killed by SIGBUS, but {last}; the faulting mapping is unknown"));
    }
    if let Some(because) = space::may_have_filled(analysis, &[FilesystemUse::Shm], failure, false) {
        return Err(because);
    }
    let moved = history
        .used
        .peak()
        .is_some_and(|(_, peak)| history.used.first().is_some_and(|(_, first)| peak > first));
    if moved && (size <= FILLS_AT_ONCE_BYTES && used >= size / FILLS_AT_ONCE_PART) {
        return Err(format!("{subject} ended on its own and reported no exception; {last}"));
    }
    Ok(None)
}

fn in_flight(failure: &Failure) -> Option<ullage_model::Evidence> {
    let loader = sharing::loader(failure)?;
    let prefetch = loader.prefetch_factor?;
    let sentence = format!(
        "{} workers x prefetch_factor {prefetch} keep {} batches of {} in flight.",
        loader.workers,
        u64::from(loader.workers).saturating_mul(prefetch),
        loader.batch_size.map_or("unknown size".into(), |size| evidence::plural(size, "sample", "samples"))
    );
    let batches = u64::from(loader.workers).saturating_mul(prefetch);
    Some(evidence::number(
        "batches in flight",
        batches,
        "batches",
        failure.agent_source(),
        failure.at,
        sentence,
    ))
}

fn context(analysis: &Analysis, failure: &Failure) -> RemedyContext {
    let counted = failure.counts().and_then(|counts| counts.shm_size);
    let read = || {
        analysis.timeline.filesystems(FilesystemUse::Shm).next().and_then(|history| history.last.size.at())
    };
    RemedyContext { bytes: counted.or_else(read), ..analysis.remedy_context(Some(failure)) }
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let gib = (context.bytes.unwrap_or(0).saturating_mul(4) >> 30).max(8);
    let mut fixes = Vec::new();
    if context.is_root() {
        fixes.push(Fix::new(
            "Enlarge it now (needs the right to mount)",
            format!("mount -o remount,size={gib}G /dev/shm"),
        ));
    }
    fixes.push(
        Fix::new("Start the container with a larger /dev/shm", format!("docker run --shm-size={gib}g IMAGE"))
            .only(Place::Container),
    );
    fixes.push(sharing::fewer_batches(context));
    fixes.extend(sharing::arena(context));
    fixes
}
