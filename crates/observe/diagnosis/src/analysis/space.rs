//! A full filesystem as a failing process met it: shared by /dev/shm's bytes, a tmpfs's inodes and a full disk.

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::run::Run;
use crate::evidence;
use crate::history::FilesystemHistory;
use crate::policy::given::{EFAULT, MADE_A_SECOND, SIGBUS, WRITTEN_A_SECOND};
use crate::policy::limits::{
    at_limit, reaches, DISK_LEFT_BYTES, FILESYSTEM_BEFORE_S, JUST_AFTER_S, NEAR_LIMIT, UNSETTLED_S,
};
use ullage_model::{At, Ending, Evidence, FilesystemUse};

/// The error speaks of a shared segment or of /dev/shm, or of nothing, where /dev/shm was full.
pub(crate) fn about_shm(failure: &Failure) -> bool {
    names_shm(failure) || (names_nothing(failure) && is_no_space(failure) && shm_alone_was_full(failure))
}

fn names_nothing(failure: &Failure) -> bool {
    failure.counts().is_none_or(|counts| counts.path.as_deref().unwrap_or("").is_empty())
}

/// It speaks of a shared segment or of /dev/shm.
pub(crate) fn names_shm(failure: &Failure) -> bool {
    let text = failure.text();
    let path = failure.counts().and_then(|counts| counts.path.as_deref()).unwrap_or("");
    ["/dev/shm", "shared memory", "</torch_", "/psm_", "SemLock", "</nccl"]
        .iter()
        .any(|part| text.contains(part))
        || path.starts_with("/dev/shm")
        || (path.is_empty()
            && (failure.passes("multiprocessing/shared_memory") || failure.passes("synchronize.py")))
}

/// An error of a write to an open file names no path: /dev/shm was full at the exception, and the temporary directory was not.
fn shm_alone_was_full(failure: &Failure) -> bool {
    failure.counts().is_some_and(|counts| {
        let (used, size) = (counts.shm_used.unwrap_or(0), counts.shm_size.unwrap_or(0));
        size > 0
            && size - used.min(size) < DISK_LEFT_BYTES
            && counts.tmp_free.is_some_and(|free| free >= DISK_LEFT_BYTES)
    })
}

/// The same, by what was read as well: who reports it may have removed what filled it before it could count.
pub(crate) fn about_shm_as_read(run: &Run, failure: &Failure) -> bool {
    let near = |used_for: &[FilesystemUse]| {
        fullest(run, used_for, failure, false)
            .is_some_and(|(_, _, used, size)| reaches(NEAR_LIMIT, used, size))
    };
    let read = || near(&[FilesystemUse::Shm]) && !near(&[FilesystemUse::Temporary, FilesystemUse::Work]);
    about_shm(failure) || (names_nothing(failure) && is_no_space(failure) && read())
}

/// The object could not be made: a tmpfs refuses that for inodes only, because an empty file has no page. Bytes
/// are refused when pages are reserved or touched.
pub(crate) fn at_creation(failure: &Failure) -> bool {
    let text = failure.text();
    let path = failure.counts().and_then(|counts| counts.path.as_deref()).unwrap_or("");
    text.contains("unable to open shared memory object")
        || text.contains(": '/psm_")
        || (path.starts_with("/psm_") && !text.contains("unable to"))
}

/// ENOSPC, told by the agent.
pub(crate) fn is_no_space(failure: &Failure) -> bool {
    failure.symptom() == Symptom::NoSpace
}

/// The process was ended by SIGBUS.
pub(crate) fn is_bus_error(failure: &Failure) -> bool {
    failure.ending == Some(Ending::Signaled(SIGBUS))
}

/// A page of a mapping could not be supplied: SIGBUS where the program touched it, EFAULT where it asked the kernel to fill it in
/// advance (`MADV_POPULATE_WRITE`, madvise(2)) or to read into it.
pub(crate) fn is_page_refused(failure: &Failure) -> bool {
    is_bus_error(failure) || is_bad_address(failure)
}

fn is_bad_address(failure: &Failure) -> bool {
    failure.exception.is_some_and(|seen| seen.report.errno == Some(EFAULT))
}

/// The fullest reading in the last seconds before a failure and just after it.
pub(crate) fn fullest(
    run: &Run,
    used_for: &[FilesystemUse],
    failure: &Failure,
    inodes: bool,
) -> Option<(FilesystemHistory, At, u64, u64)> {
    let from = At::from_seconds(failure.at.seconds() - FILESYSTEM_BEFORE_S);
    let to = At::from_seconds(failure.at.seconds() + JUST_AFTER_S);
    used_for
        .iter()
        .flat_map(|used_for| run.timeline.filesystems(*used_for))
        .filter_map(|history| {
            let (series, limit) = if inodes {
                (&history.inodes, history.last.inodes.at()?)
            } else {
                (&history.used, history.last.size.at()?)
            };
            let before = series.peak_between(from, failure.at).or_else(|| series.at_or_before(failure.at));
            let after = series.peak_between(failure.at, to);
            let (at, used) = [before, after].into_iter().flatten().max_by(|a, b| a.1.total_cmp(&b.1))?;
            (limit > 0).then(|| (history.clone(), at, used as u64, limit))
        })
        .max_by(|a, b| (a.2 as f64 / a.3 as f64).total_cmp(&(b.2 as f64 / b.3 as f64)))
}

/// Why a process that ended without a word may have met a full filesystem that the last reading shows with room:
/// it was in use, and small enough to fill since then. None where it was not.
pub(crate) fn may_have_filled(
    run: &Run,
    used_for: &[FilesystemUse],
    failure: &Failure,
    inodes: bool,
) -> Option<String> {
    let subject = failure.process.map_or_else(|| "a process".into(), evidence::describe);
    used_for.iter().flat_map(|used_for| run.timeline.filesystems(*used_for)).find_map(|history| {
        let (series, limit, fastest) = if inodes {
            (&history.inodes, history.last.inodes.at()?, MADE_A_SECOND)
        } else {
            (&history.used, history.last.size.at()?, WRITTEN_A_SECOND)
        };
        // What a failing process held it may give back before it ends: the last second's readings rule nothing out.
        let settled = At::from_seconds(failure.at.seconds() - UNSETTLED_S);
        let (at, used) = series.at_or_before(settled).or_else(|| series.first())?;
        let path = &history.last.path;
        let shown =
            |n: u64| if inodes { format!("{} inodes", evidence::count(n)) } else { evidence::bytes(n) };
        let age = failure.at.since(at);
        (age > 0.0 && used + fastest * age >= limit as f64).then(|| {
            format!(
                "{subject} ended on its own, {} after {path} had {} of {} in use, and reported no exception",
                evidence::seconds(age),
                shown(used as u64),
                shown(limit)
            )
        })
    })
}

/// So full that the next request of a usual size is refused.
pub(crate) fn is_full(used: u64, limit: u64) -> bool {
    at_limit(used, limit)
}

/// `/dev/shm had 63 MiB of 64 MiB in use, read 0.4 s before.`
pub(crate) fn reading(path: &str, what: &str, used: u64, limit: u64, at: At, failure_at: At) -> Evidence {
    let (shown, of, unit) = match what {
        "bytes" => (evidence::bytes(used), evidence::bytes(limit), "bytes"),
        _ => (evidence::count(used), format!("{} inodes", evidence::count(limit)), "inodes"),
    };
    let age = failure_at.since(at);
    let when = if age >= 0.0 {
        format!("read {} before the failure", evidence::seconds(age))
    } else {
        format!("read {} after the failure", evidence::seconds(-age))
    };
    let sentence = format!("{path} had {shown} of {of} in use, {when}.");
    evidence::with_limit(
        evidence::number(
            &format!("{path} {what}"),
            used,
            unit,
            evidence::Source::Filesystem(path.to_owned()),
            at,
            sentence,
        ),
        limit,
    )
}

/// `0.4 s before`, `0.2 s after it`.
pub(crate) fn when(at: At, failure_at: At) -> String {
    let age = failure_at.since(at);
    if age >= 0.0 {
        format!("{} before", evidence::seconds(age))
    } else {
        format!("{} after", evidence::seconds(-age))
    }
}

/// The end by SIGBUS as evidence.
pub(crate) fn bus_error_sentence(failure: &Failure) -> Option<Evidence> {
    let process = failure.process?;
    if is_bad_address(failure) {
        let sentence = format!(
            "{} was refused a page of a mapping with EFAULT (\"Bad address\"), as a touch would have been with SIGBUS: the filesystem could not supply it.",
            evidence::capital(&evidence::describe(process))
        );
        return Some(evidence::text("error", "EFAULT", failure.agent_source(), Some(failure.at), sentence));
    }
    let sentence = format!(
        "{} was killed by SIGBUS: the filesystem could not supply a mapped page.",
        evidence::capital(&evidence::describe(process))
    );
    Some(evidence::text("signal", "SIGBUS", "how the process ended", Some(failure.at), sentence))
}
