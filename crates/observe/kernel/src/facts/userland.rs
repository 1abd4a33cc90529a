//! What stands around the kernel: a container's runtime, and whether logind removes a user's shared memory.
//!
//! ```text
//! /etc/systemd/logind.conf, /etc/systemd/logind.conf.d/*.conf:  RemoveIPC=no      (logind.conf(5); default yes)
//! ```
//! The surprise: the default removes all of a user's POSIX and System V shared memory when the last session ends,
//! under the feet of a job that goes on (nohup, tmux without lingering).

use super::collector::Collector;
use ullage_model::{Fact, Measured};

pub(super) fn collect(collector: &mut Collector<'_>) {
    let runtime = container(collector);
    collector.set("container.runtime", runtime);
    let kernel = collector.text("/proc/sys/kernel/osrelease");
    let wsl = kernel.map(|release| release.to_lowercase().contains("microsoft"));
    collector.set("container.wsl", wsl);
    let removes = remove_ipc(collector);
    collector.set("systemd.RemoveIPC", removes);
}

fn exists(collector: &Collector<'_>, path: &str) -> bool {
    collector.root.below(path).exists()
}

fn container(collector: &mut Collector<'_>) -> Fact {
    if exists(collector, "/.dockerenv") {
        return "docker".into();
    }
    if exists(collector, "/run/.containerenv") {
        return "podman".into();
    }
    if exists(collector, "/.singularity.d") {
        return "singularity".into();
    }
    if exists(collector, "/var/run/secrets/kubernetes.io") {
        return "kubernetes".into();
    }
    // systemd-nspawn, lxc and others tell their first process so.
    match collector.text("/proc/1/environ") {
        Measured::Known(text) => {
            let kind = text.split('\0').find_map(|variable| variable.strip_prefix("container="));
            kind.unwrap_or("none").into()
        }
        Measured::Missing(_) => "none seen".into(),
    }
}

fn remove_ipc(collector: &mut Collector<'_>) -> Fact {
    if !exists(collector, "/run/systemd/system") {
        return "no systemd".into();
    }
    let mut files = vec!["/etc/systemd/logind.conf".to_owned()];
    let more = std::fs::read_dir(collector.root.below("/etc/systemd/logind.conf.d"));
    let mut names: Vec<String> = more
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    files.extend(
        names
            .into_iter()
            .filter(|name| name.ends_with(".conf"))
            .map(|name| format!("/etc/systemd/logind.conf.d/{name}")),
    );
    let said = files.iter().filter_map(|file| parse_remove_ipc(&collector.text(file).known()?)).last();
    said.unwrap_or_else(|| "yes".to_owned()).into()
}

/// The last word of the file on it; lines that begin with `#` are comments.
fn parse_remove_ipc(text: &str) -> Option<String> {
    let said = text.lines().filter_map(|line| line.trim().strip_prefix("RemoveIPC=")).next_back()?;
    Some(match said.trim() {
        "0" | "no" | "false" | "off" | "n" | "f" => "no".into(),
        _ => "yes".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_ipc_counts_and_comments_do_not() {
        assert_eq!(parse_remove_ipc("[Login]\n#RemoveIPC=no\n"), None);
        assert_eq!(parse_remove_ipc("RemoveIPC=yes\nRemoveIPC=no\n").as_deref(), Some("no"));
    }
}
