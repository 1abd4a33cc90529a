//! # tmpfs-inodes
//!
//! ## What it does
//! Finds a tmpfs, mostly /dev/shm, without an inode left although bytes are free.
//!
//! ## Why it happens
//! A tmpfs holds half as many files as the machine has pages, fewer where it was mounted with `nr_inodes=` or
//! a small size. With the strategy `file_system` every shared tensor is a file.
//!
//! ## How it is told apart
//! `ENOSPC` (28) with `f_favail` 0 and bytes free: `df -i` full, `df -h` not. Full in bytes: shm-full-bytes.
//!
//! ## Known problems
//! Segments that a dying process gives back make the reading after it look free.
//!
//! ## Example
//! `RuntimeError: unable to open shared memory object </torch_1_2_3> in read-write mode: No space left on device (28)`
//!
//! ## Remedy
//! Mount it with more inodes, or make fewer, larger objects.
//!
//! ## References
//! - tmpfs(5)

use crate::found::{better, finding};
use crate::rule::{Case, Judgement, Rule, Setting};
use crate::{say, sharing, space};
use ullage_model::{CountsAtFailure, FilesystemUse, Finding, Fix, Status};

pub(super) const RULE: Rule = Rule {
    id: "tmpfs-inodes",
    title: "tmpfs inode limit reached although bytes are free",
    source: include_str!("tmpfs_inodes.rs"),
    judge,
    fixes,
};

const USES: [FilesystemUse; 2] = [FilesystemUse::Shm, FilesystemUse::Temporary];

fn judge(case: &Case) -> Judgement {
    let mut found: Option<Finding> = None;
    let mut unsure = None;
    for failure in &case.failures {
        let told = space::is_no_space(failure);
        if !told && !failure.unexplained_end() {
            continue;
        }
        if failure.unexplained_end() && unsure.is_none() {
            unsure = space::may_have_filled(case, &[FilesystemUse::Shm], failure, true);
        }
        let mut evidence = Vec::new();
        let mut known = (Status::Supported, if told { 0.85 } else { 0.7 });
        let mut path = "/dev/shm".to_owned();
        let counts = failure.counts().filter(|_| told);
        let at_failure = counts.and_then(|counts| counts.shm_inodes_used.zip(counts.shm_inodes));
        let read = space::fullest(case, &USES, failure, true)
            .filter(|(history, _, used, limit)| history.last.tmpfs && used.saturating_add(2) >= *limit);
        match (at_failure, counts.and_then(|counts| counts.path_inodes_free), read) {
            (Some((used, all)), _, _)
                if all > 0 && used.saturating_add(2) >= all && space::about_shm(failure) =>
            {
                known = (Status::Established, 0.96);
                let sentence = format!(
                    "/dev/shm had {} of {} inodes in use at the exception, while bytes were free.",
                    say::count(used),
                    say::count(all)
                );
                let met = say::number(
                    "/dev/shm inodes",
                    used,
                    "inodes",
                    &failure.agent_source(),
                    failure.at,
                    sentence,
                );
                evidence.push(say::of(met, all));
            }
            (_, Some(0), Some((history, at, used, limit))) => {
                known = (Status::Established, 0.95);
                evidence.push(space::reading(&history.last.path, "inodes", used, limit, at, failure.at));
                path = history.last.path;
            }
            (_, _, Some((history, at, used, limit))) => {
                let full_in_bytes =
                    history.last.size.at().is_some_and(|size| space::is_full(history.last.used.0, size));
                if full_in_bytes {
                    continue;
                }
                evidence.push(space::reading(&history.last.path, "inodes", used, limit, at, failure.at));
                path = history.last.path;
            }
            _ => match counts.and_then(refused_at_creation).filter(|_| space::at_creation(failure)) {
                Some((used, all)) => {
                    let sentence = format!(
                        "/dev/shm allows {} inodes, and had bytes free; making an empty object in it fails for inodes only. As the exception left, {} were in use: what its frames held was given back by then.",
                        say::count(all),
                        say::count(used)
                    );
                    let source = failure.agent_source();
                    let met = say::number("/dev/shm inodes", used, "inodes", &source, failure.at, sentence);
                    evidence.push(say::of(met, all));
                }
                None => continue,
            },
        }
        evidence.extend(sharing::exception_sentence(failure));
        let setting = Setting { path: Some(path), ..case.setting(Some(failure)) };
        found = better(found, finding(case, &RULE, failure, known, evidence, &setting));
    }
    match (found, unsure) {
        (Some(found), _) => Judgement::one(found),
        (None, Some(because)) => Judgement::CannotTell { because },
        (None, None) => Judgement::Nothing,
    }
}

/// Inodes in use and in all, where bytes were free.
fn refused_at_creation(counts: &CountsAtFailure) -> Option<(u64, u64)> {
    let bytes = counts.shm_used.zip(counts.shm_size);
    let inodes = counts.shm_inodes_used.zip(counts.shm_inodes).filter(|(_, all)| *all > 0)?;
    bytes.is_some_and(|(used, size)| used < size / 10 * 9).then_some(inodes)
}

fn fixes(setting: &Setting) -> Vec<Fix> {
    let path = setting.path.as_deref().unwrap_or("/dev/shm");
    let mut fixes = Vec::new();
    if setting.is_root() {
        fixes.push(Fix {
            title: "Take the limit on inodes away (needs the right to mount)".into(),
            command: format!("mount -o remount,nr_inodes=0 {path}"),
            automatic: None,
        });
    }
    fixes.push(sharing::one_tensor());
    fixes.push(Fix {
        title: "See it full: the column IUse%".into(),
        command: format!("df -i {path}"),
        automatic: None,
    });
    fixes.extend(sharing::arena(setting));
    fixes
}
