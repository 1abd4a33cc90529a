//! /dev/shm and the folder of temporary files: how large, of which kind, mounted how.

use super::collector::Collector;
use crate::host::mountinfo::{is_visible, parse_mountinfo, Mount};
use crate::ProcessDir;
use ullage_model::{filesystem_facts, FilesystemUse};

/// Options of a mount that matter and are not told as a figure.
const OPTIONS: &[&str] = &["huge", "noswap", "mpol"];

pub(super) fn collect(collector: &mut Collector<'_>, process: &ProcessDir) {
    let mounts = match process.read("mountinfo", &mut collector.buffer) {
        Ok(()) => parse_mountinfo(&collector.buffer),
        Err(_) => Vec::new(),
    };
    place(collector, process, &mounts, "shm", "/dev/shm", FilesystemUse::Shm);
    // TMPDIR is among the variables; where it is set, it is what Python uses.
    let tmp = std::env::var("TMPDIR").ok().filter(|path| path.starts_with('/'));
    let tmp = tmp.filter(|_| collector.root.is_live()).unwrap_or_else(|| "/tmp".into());
    place(collector, process, &mounts, "tmp", &tmp, FilesystemUse::Temporary);
}

fn place(
    collector: &mut Collector<'_>,
    process: &ProcessDir,
    mounts: &[Mount],
    name: &str,
    path: &str,
    used_for: FilesystemUse,
) {
    match process.filesystem(path, used_for) {
        Ok(reading) => {
            filesystem_facts(name, &reading, &mut collector.facts);
            collector.set(format!("{name}.used"), reading.used);
        }
        Err(error) => return collector.set(format!("{name}.size"), error.missing_feature()),
    }
    let Some(mount) = mounts
        .iter()
        .filter(|mount| is_visible(mounts, mount) && lies_in(path, &mount.mount_point))
        .max_by_key(|mount| mount.mount_point.len())
    else {
        return;
    };
    collector.set(format!("{name}.type"), mount.kind.as_str());
    let options: Vec<&str> = mount
        .options
        .iter()
        .map(String::as_str)
        .filter(|option| OPTIONS.iter().any(|known| option.split('=').next() == Some(*known)))
        .collect();
    collector.set(format!("{name}.options"), options.join(","));
}

fn lies_in(path: &str, mount_point: &str) -> bool {
    path.strip_prefix(mount_point.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_a_mount_by_whole_names() {
        assert!(lies_in("/dev/shm", "/dev/shm") && lies_in("/dev/shm", "/") && lies_in("/tmp/a", "/tmp"));
        assert!(!lies_in("/dev/shm2", "/dev/shm"));
    }
}
