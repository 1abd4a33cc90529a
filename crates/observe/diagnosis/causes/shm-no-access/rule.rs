//! Does a run show shm-no-access? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{FilesystemUse, Finding, Fix, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

fn judge(analysis: &Analysis) -> Judgement {
    let mounted = analysis.timeline.filesystems(FilesystemUse::Shm).next().is_some();
    by_failure(analysis, |failure| {
        match failure.unexplained_end() && !mounted && analysis.timeline.samples() > 0 {
            true => Err(format!(
                "{} ended on its own, /dev/shm could not be read, and it reported no exception",
                failure.process.map_or_else(|| "a process".into(), evidence::describe)
            )),
            false => Ok(refused(analysis, failure)),
        }
    })
}

fn refused(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let report = &failure.exception?.report;
    let text = failure.text();
    let code = report.errno.or_else(|| code_in(&text))?;
    let mounted = analysis.timeline.filesystems(FilesystemUse::Shm).next();
    let reason = match code {
        1 | 13 => "permission denied",
        30 => "/dev/shm is mounted read-only",
        38 => "there is no usable /dev/shm",
        // Of a tensor: its sender may have ended. Of a semaphore: the place is not there.
        2 if mounted.is_none() => "there is none",
        _ => return None,
    };
    // Frames only where the object is made: an open of somebody's file by its name fails for other reasons.
    let makes = failure.passes("synchronize.py")
        || failure.passes("SemLock")
        || (failure.passes("shared_memory.py") && !text.contains("'/dev/shm/"))
        || (text.contains("unable to open shared memory object") && text.contains("read-write mode"))
        || (text.contains("'/dev/shm/") && code == 30);
    if !makes {
        return None;
    }
    let sentence = format!("The job could not create an object in /dev/shm: {reason} (error {code}).");
    let mut evidence =
        vec![evidence::text("error", &code.to_string(), failure.agent_source(), Some(failure.at), sentence)];
    evidence.extend(sharing::exception_sentence(failure));
    evidence.push(match mounted {
        Some(place) => {
            let sentence =
                format!("{} is not full: {} in use.", place.last.path, evidence::bytes(place.last.used.0));
            let source = evidence::Source::Filesystem(place.last.path.clone());
            evidence::number("/dev/shm in use", place.last.used.0, "bytes", source, place.last_at, sentence)
        }
        None => evidence::text(
            "/dev/shm",
            "not there",
            "statvfs /dev/shm",
            Some(failure.at),
            "The job sees no /dev/shm at all.".into(),
        ),
    });
    Some(finding(
        analysis,
        &RULE,
        failure,
        Proof::SeenInside,
        evidence,
        &analysis.remedy_context(Some(failure)),
    ))
}

/// `13` of `Permission denied (13)`, of a message of torch.
fn code_in(text: &str) -> Option<i32> {
    [
        "Permission denied (13)",
        "Read-only file system (30)",
        "Function not implemented (38)",
        "No such file or directory (2)",
    ]
    .iter()
    .zip([13, 30, 38, 2])
    .find(|(words, _)| text.contains(**words))
    .map(|(_, code)| code)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = Vec::new();
    if context.is_root() {
        fixes.push(Fix::new(
            "Mount one (needs the right to mount)",
            "mount -t tmpfs -o mode=1777,size=8g tmpfs /dev/shm",
        ));
    }
    fixes.push(
        Fix::new("In a container: give it one", "docker run --tmpfs /dev/shm:rw,mode=1777,size=8g IMAGE")
            .only(Place::Container),
    );
    fixes.push(Fix::new("Check the mount", "findmnt /dev/shm; ls -ld /dev/shm"));
    fixes
        .push(Fix::new("Load in the main process", "DataLoader(dataset, num_workers=0)").only(Place::Loader));
    fixes
}
