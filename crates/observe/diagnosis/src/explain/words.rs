//! Which of its causes does a message itself single out, by its own words or by the lines above it?
//!
//! The surprise: Python names no file where a write fails, so that a full disk and a full /dev/shm read the same; the frames of
//! the traceback tell them apart.

use super::log_match::{Doing, LogMatch};
use crate::policy::log::TASKS_BY_DEFAULT;
use std::collections::VecDeque;

const FRAMES: [(Doing, &[&str]); 4] = [
    (
        Doing::Sharing,
        &["multiprocessing/", "SemLock", "shm_open", "_share_", "shared_memory.py", "sharedctypes"],
    ),
    (
        Doing::Writing,
        &[
            "serialization.py",
            "shutil.py",
            "logging/__init__.py",
            "zipfile",
            "tempfile.py",
            "tensorboard",
            "event_file_writer",
            "wandb",
            "safetensors",
            "h5py",
            "torch.save(",
            "np.save",
            ".to_csv(",
            ".write(",
            "pickle.dump(",
            "json.dump(",
        ],
    ),
    (Doing::Forking, &["os.fork()", "_fork_exec(", "forkserver", "_start_new_thread(", "popen_fork"]),
    (Doing::Mapping, &["mmap.mmap(", "np.memmap", "memmap.py"]),
];

/// What the newest of the lines above shows.
pub(crate) fn doing(above: &VecDeque<(u64, String)>) -> Doing {
    let shows = |line: &str| {
        FRAMES
            .iter()
            .find(|(_, frames)| frames.iter().any(|frame| line.contains(frame)))
            .map(|(doing, _)| *doing)
    };
    above.iter().rev().find_map(|(_, line)| shows(line)).unwrap_or_default()
}

/// The one cause, where the message names it.
pub(crate) fn singled_out(found: &LogMatch) -> Option<&'static str> {
    let says = |words: &str| found.text.contains(words);
    let one = match found.pattern {
        "dmesg-oom-constraint" if says("CONSTRAINT_MEMCG") => "memcg-oom-kill",
        "dmesg-oom-constraint" if says("CONSTRAINT_NONE") => "host-oom-kill",
        "dmesg-oom-constraint" => "numa-membind-oom",
        "py-enospc" => match (path(&found.text), found.doing) {
            (Some(path), _) if is_shared(path) => "shm-full-bytes",
            (Some(path), _) if path.contains('/') => "disk-full-tmp",
            (None, Doing::Writing) => "disk-full-tmp",
            (None, Doing::Sharing) => "shm-full-bytes",
            _ => return None,
        },
        "torch-write-file" | "torch-resize-file" => match between(&found.text, '<', '>')? {
            path if is_shared(path) || path.starts_with("/torch_") => "shm-full-bytes",
            _ => "disk-full-tmp",
        },
        "py-enomem" if found.doing == Doing::Mapping => "max-map-count-exhausted",
        "openblas-nproc" => {
            let current = found.text.split("RLIMIT_NPROC ").nth(1)?.split(' ').next()?.parse::<i64>().ok()?;
            if (0..=TASKS_BY_DEFAULT).contains(&current) {
                "nproc-rlimit"
            } else {
                "pids-limit-cgroup"
            }
        }
        "libgomp-thread" if says("Cannot allocate memory") => "rlimit-as-virtual-memory",
        "libgomp-thread" if says("Operation not permitted") => "clone3-seccomp-eperm",
        // Part of a mapping that is given back makes two of one.
        "jemalloc-conf" if says("munmap") => "max-map-count-exhausted",
        "nccl-shm-create" if says("Permission denied") => "shm-no-access",
        _ => return None,
    };
    Some(one)
}

/// The file that Python names behind an error.
fn path(text: &str) -> Option<&str> {
    between(text.split("[Errno 28]").nth(1)?, '\'', '\'')
}

fn between(text: &str, open: char, close: char) -> Option<&str> {
    Some(text.split_once(open)?.1.split_once(close)?.0)
}

fn is_shared(path: &str) -> bool {
    path.starts_with("/dev/shm")
        || path.starts_with("/run/shm")
        || ["/psm_", "/mp-", "/loky-"].iter().any(|name| path.starts_with(name))
}
