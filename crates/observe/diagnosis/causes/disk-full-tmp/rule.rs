//! Does a run show disk-full-tmp? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::{Failure, Symptom};
use crate::analysis::space;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::limits::{reaches, DISK_AT_LIMIT, DISK_LEFT_BYTES};
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{FilesystemUse, Finding, Fix, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

const USES: [FilesystemUse; 2] = [FilesystemUse::Temporary, FilesystemUse::Work];

fn judge(analysis: &Analysis) -> Judgement {
    by_failure(analysis, |failure| {
        let found = if space::is_no_space(failure) && !space::about_shm_as_read(analysis, failure) {
            reported(analysis, failure)
        } else if failure.symptom() == Symptom::Unwritten {
            let left = failure.counts().and_then(|counts| counts.path_free);
            reported(analysis, failure).filter(|_| left.is_some_and(|free| free < DISK_LEFT_BYTES))
        } else if space::is_page_refused(failure) || failure.unexplained_end() {
            read(analysis, failure)
        } else {
            None
        };
        let may_be = || space::may_have_filled(analysis, &USES, failure, false);
        match found.is_none() && failure.unexplained_end() {
            true => may_be().map_or(Ok(None), Err),
            false => Ok(found),
        }
    })
}

fn reported(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let counts = failure.counts()?;
    let path = counts.path.clone();
    let (free, of) = match (counts.path_free, counts.tmp_free) {
        (Some(free), _) => (Some(free), path.clone().unwrap_or_else(|| "the failed path".into())),
        (None, tmp) => (tmp, "the temporary directory".into()),
    };
    let mut evidence = Vec::new();
    let mut known = Proof::InPart;
    if let Some(free) = free {
        if free < DISK_LEFT_BYTES {
            known = Proof::SeenInside;
        }
        let sentence = format!("The filesystem of {of} had {} free at the exception.", evidence::bytes(free));
        evidence.push(evidence::number(
            "free bytes",
            free,
            "bytes",
            failure.agent_source(),
            failure.at,
            sentence,
        ));
    }
    let full = space::fullest(analysis, &USES, failure, false);
    match full {
        Some((history, at, used, size)) if space::is_full(used, size) => {
            evidence.push(space::reading(&history.last.path, "bytes", used, size, at, failure.at));
        }
        // No inode left is another cause, and so is a quota; neither shows as a full filesystem.
        _ if counts.path_inodes_free == Some(0) => return None,
        _ => {}
    }
    evidence.extend(sharing::exception_sentence(failure));
    let context = RemedyContext { path, ..analysis.remedy_context(Some(failure)) };
    Some(finding(analysis, &RULE, failure, known, evidence, &context))
}

fn read(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let (history, at, used, size) = space::fullest(analysis, &USES, failure, false)?;
    let filled_meanwhile = history.used.first().is_some_and(|(_, first)| used as f64 > first);
    if !(reaches(DISK_AT_LIMIT, used, size) && filled_meanwhile) {
        return None;
    }
    let bus = space::is_page_refused(failure);
    let mut evidence = vec![space::reading(&history.last.path, "bytes", used, size, at, failure.at)];
    evidence.extend(space::bus_error_sentence(failure).filter(|_| bus));
    if history.last.tmpfs {
        let sentence = format!("{} is a tmpfs: its files use memory.", history.last.path);
        evidence.push(evidence::text(
            "filesystem",
            "tmpfs",
            evidence::Source::Filesystem(history.last.path.clone()),
            Some(at),
            sentence,
        ));
    }
    let context = RemedyContext { path: Some(history.last.path), ..analysis.remedy_context(Some(failure)) };
    let known = Proof::ReadNearLimit;
    Some(finding(analysis, &RULE, failure, known, evidence, &context))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let path = context.path.as_deref().unwrap_or("/tmp");
    vec![
        Fix::new(
            "Put temporary files on a filesystem with room",
            "mkdir -p \"$HOME/tmp\" && export TMPDIR=\"$HOME/tmp\"",
        ),
        Fix::new("Find what fills it", format!("df -h {path}; du -xsh /tmp/* 2>/dev/null | sort -h | tail")),
        Fix::new(
            "Put the caches of compilers and data sets there too",
            "export TORCHINDUCTOR_CACHE_DIR=\"$TMPDIR/inductor\" TRITON_CACHE_DIR=\"$TMPDIR/triton\" HF_HOME=\"$TMPDIR/hf\"",
        ),
    ]
}
