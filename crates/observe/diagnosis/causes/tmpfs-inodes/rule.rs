//! Does a run show tmpfs-inodes? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::space;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::limits::{reaches, NEAR_LIMIT};
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{CountsAtFailure, Evidence, FilesystemUse, Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

const USES: [FilesystemUse; 2] = [FilesystemUse::Shm, FilesystemUse::Temporary];

fn judge(analysis: &Analysis) -> Judgement {
    by_failure(analysis, |failure| {
        let reported = space::is_no_space(failure);
        let unexplained = failure.unexplained_end();
        let found = (reported || unexplained).then(|| full(analysis, failure, reported)).flatten();
        match found {
            None if unexplained => {
                space::may_have_filled(analysis, &[FilesystemUse::Shm], failure, true).map_or(Ok(None), Err)
            }
            found => Ok(found),
        }
    })
}

/// A failure that met a tmpfs without a free inode.
fn full(analysis: &Analysis, failure: &Failure, reported: bool) -> Option<Finding> {
    let counts = failure.counts().filter(|_| reported);
    let counted = counts.and_then(|counts| counted(failure, counts));
    let read = || {
        let (history, at, used, limit) = space::fullest(analysis, &USES, failure, true)
            .filter(|(history, _, used, limit)| history.last.tmpfs && used.saturating_add(2) >= *limit)?;
        let none_free = counts.and_then(|counts| counts.path_inodes_free) == Some(0);
        let full_in_bytes =
            history.last.size.at().is_some_and(|size| space::is_full(history.last.used.0, size));
        let known = if none_free { Proof::SeenInside } else { Proof::ReadNearLimit };
        let evidence = space::reading(&history.last.path, "inodes", used, limit, at, failure.at);
        Some((none_free || !full_in_bytes).then_some((known, evidence, history.last.path)))
    };
    // A reading of a filesystem that is full in bytes too says nothing of inodes.
    let (known, met, path) = match counted {
        Some((known, evidence)) => (known, evidence, "/dev/shm".to_owned()),
        None => match read() {
            Some(reading) => reading?,
            None => (Proof::InPart, at_creation(failure, counts?)?, "/dev/shm".to_owned()),
        },
    };
    let mut evidence = vec![met];
    evidence.extend(sharing::exception_sentence(failure));
    let context = RemedyContext { path: Some(path), ..analysis.remedy_context(Some(failure)) };
    Some(finding(analysis, &RULE, failure, known, evidence, &context))
}

/// Counted inside the process, at the exception.
fn counted(failure: &Failure, counts: &CountsAtFailure) -> Option<(Proof, Evidence)> {
    let (used, all) = counts.shm_inodes_used.zip(counts.shm_inodes)?;
    if all == 0 || used.saturating_add(2) < all || !space::about_shm(failure) {
        return None;
    }
    let sentence = format!(
        "/dev/shm had {} of {} inodes in use at the exception, with bytes free.",
        evidence::count(used),
        evidence::count(all)
    );
    let source = failure.agent_source();
    let met = evidence::number("/dev/shm inodes", used, "inodes", source, failure.at, sentence);
    Some((Proof::SeenInside, evidence::with_limit(met, all)))
}

/// Nothing was full any more as the exception left, but making an empty object was refused.
fn at_creation(failure: &Failure, counts: &CountsAtFailure) -> Option<Evidence> {
    let (used, all) = refused_at_creation(counts).filter(|_| space::at_creation(failure))?;
    let sentence = format!(
        "Creating an empty object failed in /dev/shm, which had bytes free: no inode was left. After the exception {} of {} were in use.",
        evidence::count(used),
        evidence::plural(all, "inode", "inodes")
    );
    let source = failure.agent_source();
    let met = evidence::number("/dev/shm inodes", used, "inodes", source, failure.at, sentence);
    Some(evidence::with_limit(met, all))
}

/// Inodes in use and in all, where bytes were free.
fn refused_at_creation(counts: &CountsAtFailure) -> Option<(u64, u64)> {
    let bytes = counts.shm_used.zip(counts.shm_size);
    let inodes = counts.shm_inodes_used.zip(counts.shm_inodes).filter(|(_, all)| *all > 0)?;
    bytes.is_some_and(|(used, size)| !reaches(NEAR_LIMIT, used, size)).then_some(inodes)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let path = context.path.as_deref().unwrap_or("/dev/shm");
    let mut fixes = Vec::new();
    if context.is_root() {
        fixes.push(Fix::new(
            "Lift the limit on inodes (needs the right to mount)",
            format!("mount -o remount,nr_inodes=0 {path}"),
        ));
    }
    fixes.push(sharing::one_tensor());
    fixes.push(Fix::new("Check it: column IUse%", format!("df -i {path}")));
    fixes.extend(sharing::arena(context));
    fixes
}
