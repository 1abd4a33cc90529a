//! # nofile-exhausted-shared-tensors
//!
//! ## What it does
//! Finds a process that met its limit of open files (`RLIMIT_NOFILE`, `ulimit -n`) with descriptors of
//! torch's shared tensors.
//!
//! ## Why it happens
//! With the sharing strategy `file_descriptor`, the default on Linux, torch keeps one open descriptor for
//! each shared tensor: in the sender until it is taken, in the receiver for as long as the tensor lives. A
//! dataset of many tensors that is sent to spawned workers, or batches kept in a list, meet 1,024 soon.
//!
//! ## How it is told apart
//! `EMFILE` (24), and the links of most descriptors point to torch's segments. Where they point to data files,
//! sockets or pipes, it is fd-leak-files-sockets. `ENFILE` (23) is the machine's limit. `too many fds` is
//! forkserver-too-many-fds. Without the agent: the last count before the process ended, its growth, and its kinds.
//!
//! ## Known problems
//! A limit of 1,024 is met within a tenth of a second: without the agent that often cannot be told.
//!
//! ## Example
//! `RuntimeError: unable to open shared memory object </torch_7762_29220981_251> in read-write mode: Too many open files (24)`
//!
//! ## Remedy
//! Start the workers by fork; keep the samples in one tensor plus offsets; copy what is kept of a batch; raise the
//! soft limit up to the hard one.
//!
//! ## References
//! - <https://github.com/pytorch/pytorch/issues/973>
//! - getrlimit(2)

use crate::rule::descriptors;

use crate::analysis::{Analysis, RemedyContext};
use crate::rule::descriptors::Owner;
use crate::rule::sharing;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "nofile-exhausted-shared-tensors",
    title: "RLIMIT_NOFILE exhausted by the file_descriptor sharing strategy",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    descriptors::judge(analysis, &RULE, Owner::Torch)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = sharing::arena(context);
    fixes.extend(sharing::fork_context(context));
    fixes.push(sharing::one_tensor());
    fixes.push(Fix {
        title: "Where batches are kept: copy what is kept, so that the worker's segment is released".into(),
        command: "kept.append(batch.clone())".into(),
        automatic: None,
    });
    fixes.extend(descriptors::raise_soft_limit(context));
    fixes
}
