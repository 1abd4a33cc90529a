//! # fd-leak-files-sockets
//!
//! ## What it does
//! Finds a process that met its limit of open files with data files, sockets or pipes that were opened and never closed.
//!
//! ## Why it happens
//! `PIL.Image.open` without a `with`, one h5py, zarr, lmdb or sqlite handle a sample, one network client a sample,
//! pipes of subprocesses: each keeps a descriptor, and its buffers with it.
//!
//! ## How it is told apart
//! `EMFILE` (24), and most descriptors link to files, sockets or pipes; where they link to torch's segments it
//! is nofile-exhausted-shared-tensors. `ENFILE` (23) is the limit of the whole machine.
//!
//! ## Known problems
//! Where neither the agent nor the sampler could read the links, the two cannot be told apart.
//!
//! ## Example
//! `OSError: [Errno 24] Too many open files: '/data/img_123.jpg'`
//!
//! ## Remedy
//! Close what is opened; one client a worker, not one a sample.
//!
//! ## References
//! - getrlimit(2), proc_pid_fd(5)

use crate::rule::descriptors;

use crate::analysis::{Analysis, RemedyContext};
use crate::rule::descriptors::Owner;
use crate::rule::{Judgement, Rule};
use ullage_model::Fix;

pub(super) const RULE: Rule = Rule {
    id: "fd-leak-files-sockets",
    title: "File or socket descriptors leaked by the dataset or a library",
    source: include_str!("rule.rs"),
    judge,
    fixes,
};

fn judge(analysis: &Analysis) -> Judgement {
    descriptors::judge(analysis, &RULE, Owner::Other)
}

fn fixes(context: &RemedyContext) -> Vec<Fix> {
    let mut fixes = vec![
        Fix {
            title: "Close each file when its sample is read".into(),
            command: "with open(path, \"rb\") as file:\n    data = file.read()".into(),
            automatic: None,
        },
        Fix {
            title: "See where they are opened: Python names each object that is dropped unclosed".into(),
            command: "python -X dev -W always::ResourceWarning train.py".into(),
            automatic: None,
        },
        Fix {
            title: "Bound the leak to one epoch: end the workers after each".into(),
            command: "DataLoader(dataset, num_workers=4, persistent_workers=False)".into(),
            automatic: None,
        },
    ];
    fixes.extend(descriptors::raise_soft_limit(context));
    fixes
}
