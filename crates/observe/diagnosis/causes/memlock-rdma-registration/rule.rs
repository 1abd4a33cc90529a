//! Does a run show memlock-rdma-registration? page.md says what that is, and how it differs from its look-alikes.

use crate::analysis::failures::Failure;
use crate::analysis::{Analysis, RemedyContext};
use crate::evidence;
use crate::policy::counts::LARGE_MEMLOCK_BYTES;
use crate::policy::given::DEFAULT_MEMLOCK_BYTES;
use crate::rule::finding::{by_failure, finding};
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::{Finding, Fix, Place, Proof};

pub(super) const RULE: Rule = Rule { judge, fixes };

/// Calls that lock pages, as messages and stacks name them.
const CALLS: [&str; 6] = ["ibv_reg_", "ibv_create_", "ibv_alloc_pd", "RLIMIT_MEMLOCK", "mlock", "fi_mr_reg"];

fn judge(analysis: &Analysis) -> Judgement {
    by_failure(analysis, |failure| match failure.unexplained_end() {
        true => unexplained(failure),
        false => Ok(refused(analysis, failure)),
    })
}

/// Nothing was told of why it ended: a limit below today's default leaves it open.
fn unexplained(failure: &Failure) -> Result<Option<Finding>, String> {
    let small = |process: &&crate::ProcessHistory| {
        let limit = process.limits.and_then(|limits| limits.locked_memory.at());
        process.uid().is_some_and(|uid| uid != 0) && limit.is_some_and(|limit| limit < DEFAULT_MEMLOCK_BYTES)
    };
    match failure.process.filter(small) {
        Some(process) => Err(format!(
            "{} ended on its own, may lock little memory (ulimit -l), and reported no exception",
            evidence::describe(process)
        )),
        None => Ok(None),
    }
}

fn refused(analysis: &Analysis, failure: &Failure) -> Option<Finding> {
    let report = &failure.exception?.report;
    let text = failure.text();
    let call = CALLS.into_iter().find(|call| failure.passes(call))?;
    // mlock says EAGAIN too, and EPERM where the limit is 0.
    let refused = matches!(report.errno, Some(1 | 11 | 12))
        || ["Cannot allocate memory", "ENOMEM", "RLIMIT_MEMLOCK is"].iter().any(|words| text.contains(words));
    let process = failure.process?;
    let limit = process.limits?.locked_memory.at()?;
    if !refused || limit >= LARGE_MEMLOCK_BYTES || (process.uid() == Some(0) && call == "mlock") {
        return None;
    }
    let (at, locked) = process.locked.peak().unwrap_or((failure.at, 0.0));
    let sentence = format!(
        "{} had locked {} of {} (ulimit -l), and {call} asked for more.",
        evidence::capital(&evidence::describe(process)),
        evidence::bytes(locked as u64),
        evidence::bytes(limit)
    );
    let source = evidence::Source::Process(process.id.pid, "limits");
    let met = evidence::number("locked memory", locked as u64, "bytes", source, at, sentence);
    let mut evidence = vec![evidence::with_limit(met, limit)];
    evidence.extend(sharing::exception_sentence(failure));
    let known = Proof::InPart;
    Some(finding(analysis, &RULE, failure, known, evidence, &analysis.remedy_context(Some(failure))))
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![
        Fix::new(
            "In a container: lift the limit",
            "docker run --ulimit memlock=-1:-1 --cap-add IPC_LOCK IMAGE",
        )
        .only(Place::Container),
        Fix::new("Raise the soft limit to the hard limit", "ulimit -S -l $(ulimit -H -l)"),
    ];
    if context.is_root() {
        fixes.push(Fix::new(
            "For a daemon that starts jobs: set it in its unit (systemd ignores limits.conf)",
            "mkdir -p /etc/systemd/system/slurmd.service.d && printf '[Service]\\nLimitMEMLOCK=infinity\\n' > /etc/systemd/system/slurmd.service.d/memlock.conf && systemctl daemon-reload",
        ));
    }
    fixes
}
