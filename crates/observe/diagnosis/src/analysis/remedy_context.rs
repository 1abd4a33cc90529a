//! What decides which remedies a user may apply, and their exact words.

use super::failures::Failure;
use super::run::Run;
use crate::history::ProcessHistory;

/// What decides which fixes a user may apply, and their exact words. `None`: not known, nothing is assumed.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemedyContext {
    /// The job runs as root.
    pub(crate) root: Option<bool>,
    /// The parent of the workers holds a CUDA context.
    pub(crate) cuda: Option<bool>,
    /// Threads of the parent of the workers.
    pub(crate) threads: Option<u64>,
    /// Hard limit of descriptors.
    pub(crate) nofile_hard: Option<u64>,
    /// A number that the fix needs: bytes for a limit, pids' owner.
    pub(crate) bytes: Option<u64>,
    /// Path the fix is about.
    pub(crate) path: Option<String>,
    /// The job's command, where a shell needs no quotes for it.
    pub(crate) command: Option<String>,
    /// Pids the fix is about.
    pub(crate) pids: Vec<i32>,
    /// Python of the process that the fix goes into: major and minor.
    pub(crate) python: Option<(u32, u32)>,
}

impl RemedyContext {
    /// Forking is safe where the parent has no CUDA context and no threads of its own; unknown counts as
    /// safe, with the condition said in the title.
    pub(crate) fn may_fork(&self) -> bool {
        self.cuda != Some(true)
    }

    /// Objects can be made immortal: from Python 3.12 on; unknown counts as yes, with the condition said in the title.
    pub(crate) fn freezes(&self) -> bool {
        self.python.is_none_or(|version| version >= (3, 12))
    }

    pub(crate) fn is_root(&self) -> bool {
        self.root == Some(true)
    }
}

impl Run<'_> {
    /// Rights and circumstances of a process, for the fixes.
    pub(crate) fn remedy_context(&self, failure: Option<&Failure>) -> RemedyContext {
        let process = failure.and_then(|failure| failure.process);
        let report = failure.and_then(|failure| failure.exception).map(|exception| &exception.report);
        let uid = process.and_then(|process| process.uid()).or_else(|| self.main_uid());
        RemedyContext {
            command: typeable(&self.facts.command),
            root: uid.map(|uid| uid == 0),
            cuda: report.and_then(|report| report.cuda_initialized),
            threads: report.and_then(|report| report.counts.threads),
            nofile_hard: report
                .and_then(|report| report.counts.nofile_hard)
                .or_else(|| process.and_then(|p| p.limits).and_then(|limits| limits.open_files_hard.at())),
            ..RemedyContext::default()
        }
    }

    /// The same for the process that a remedy goes into, where nothing failed.
    pub(crate) fn remedy_context_of(&self, process: Option<&ProcessHistory>) -> RemedyContext {
        let version = process.and_then(|process| process.python.as_deref());
        let python = version.and_then(|version| {
            let mut parts = version.split('.').map(|part| part.parse().ok());
            Some((parts.next()??, parts.next()??))
        });
        let threads = process.and_then(|process| process.threads.last()).map(|(_, threads)| threads as u64);
        RemedyContext { python, threads, ..self.remedy_context(None) }
    }
}

/// A command as it can be typed; none where a shell would take it apart, or where it is long.
fn typeable(command: &[String]) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let fine = !command.is_empty() && command.iter().all(|word| !word.is_empty() && word.chars().all(plain));
    let typed = command.join(" ");
    (fine && typed.len() <= 120).then_some(typed)
}
