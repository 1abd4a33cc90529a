//! Puts the agent on a job's path: Python files and a socket in a private directory.
//!
//! The surprise: the directory is not the recording's. A socket's path may be at most 107 bytes long
//! (unix(7)), and a recording may lie deep or on a read-only disk.

use anyhow::Context;
use rustix::fs::{flock, FlockOperation};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ullage_model::names;

const AGENT: &str = include_str!("../../../../python/ullage/agent/agent.py");
const BACKLOG: &str = include_str!("../../../../python/ullage/agent/backlog.py");
const CENSUS: &str = include_str!("../../../../python/ullage/agent/census.py");
const COUNTS: &str = include_str!("../../../../python/ullage/agent/counts.py");
const GARBAGE: &str = include_str!("../../../../python/ullage/agent/garbage.py");
const HOOKS: &str = include_str!("../../../../python/ullage/agent/hooks.py");
const KEPT: &str = include_str!("../../../../python/ullage/agent/kept.py");
const MEMORY: &str = include_str!("../../../../python/ullage/agent/memory.py");
const PATHS: &str = include_str!("../../../../python/ullage/agent/paths.py");
const SITES: &str = include_str!("../../../../python/ullage/agent/sites.py");
const SLOTS: &str = include_str!("../../../../python/ullage/agent/slots.py");
const TRAINING: &str = include_str!("../../../../python/ullage/agent/training.py");
const WEIGH: &str = include_str!("../../../../python/ullage/agent/weigh.py");
/// Also what `ullage snapshot` asks a Python.
pub const FACTS: &str = include_str!("../../../../python/ullage/agent/facts.py");
const SITECUSTOMIZE: &str = include_str!("../../../../python/ullage/agent/sitecustomize.py");

const PREFIX: &str = "ullage-";

/// A directory without its lock is abandoned only when it is older than the moment between the two.
const NOT_YET_LOCKED: Duration = Duration::from_secs(60);

/// The directory, removed when dropped.
#[derive(Debug)]
pub struct AgentFiles {
    directory: PathBuf,
    /// Locked (flock) as long as this ullage lives, whatever ends it.
    _lock: Option<File>,
}

impl AgentFiles {
    /// Writes the files into a new directory that only this user may enter.
    pub fn create() -> anyhow::Result<AgentFiles> {
        let bases = [
            std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
            Some(std::env::temp_dir()),
            Some("/tmp".into()),
            Some("/dev/shm".into()),
        ];
        let mut last = None;
        for base in bases.into_iter().flatten() {
            match Self::create_in(&base) {
                Ok(files) => return Ok(files),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("no directory for the agent's socket")))
    }

    fn create_in(base: &Path) -> anyhow::Result<AgentFiles> {
        // Long $TMPDIRs (pytest, Nix) would not leave room for the socket's name.
        anyhow::ensure!(base.as_os_str().len() < 70, "{} is too long for a socket's path", base.display());
        let pid = std::process::id();
        let mut last = None;
        for attempt in 0..16u32 {
            let nanos = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |d| d.subsec_nanos());
            let directory = base.join(format!("{PREFIX}{pid}-{:x}", nanos.wrapping_add(attempt)));
            match std::fs::DirBuilder::new().mode(0o700).create(&directory) {
                Ok(()) => {
                    let lock = File::open(&directory).ok().filter(lock);
                    let files = AgentFiles { directory, _lock: lock };
                    std::fs::write(files.directory.join("ullage_agent.py"), AGENT)
                        .and_then(|()| std::fs::write(files.directory.join("ullage_census.py"), CENSUS))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_counts.py"), COUNTS))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_garbage.py"), GARBAGE))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_hooks.py"), HOOKS))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_backlog.py"), BACKLOG))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_kept.py"), KEPT))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_memory.py"), MEMORY))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_paths.py"), PATHS))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_sites.py"), SITES))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_slots.py"), SLOTS))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_training.py"), TRAINING))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_weigh.py"), WEIGH))
                        .and_then(|()| std::fs::write(files.directory.join("ullage_facts.py"), FACTS))
                        .and_then(|()| {
                            std::fs::write(files.directory.join("sitecustomize.py"), SITECUSTOMIZE)
                        })
                        .with_context(|| {
                            format!("cannot write the agent into {}", files.directory.display())
                        })?;
                    return Ok(files);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| anyhow::anyhow!("no attempt"), anyhow::Error::from))
            .with_context(|| format!("cannot make a private directory in {}", base.display()))
    }

    /// Where the socket goes.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("agent")
    }

    /// Variables that make the job's Pythons load the agent.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut path = self.directory.clone().into_os_string();
        if let Some(before) = std::env::var_os("PYTHONPATH").filter(|before| !before.is_empty()) {
            path.push(":");
            path.push(before);
        }
        vec![("PYTHONPATH".into(), path), (names::ENV_AGENT_SOCKET.into(), self.socket().into_os_string())]
    }
}

impl Drop for AgentFiles {
    fn drop(&mut self) {
        // Survivors of the job lose the agent for Pythons that they start later, and nothing else.
        let _ = std::fs::remove_dir_all(&self.directory);
        if let Some(base) = self.directory.parent() {
            remove_abandoned(base, NOT_YET_LOCKED);
        }
    }
}

/// Takes the lock that says "in use"; false where another ullage holds it.
fn lock(directory: &File) -> bool {
    flock(directory, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Removes what a SIGKILL of ullage left behind: our user's directories that nobody holds locked. A job that outlived
/// its ullage loses nothing but a socket that nobody reads.
fn remove_abandoned(base: &Path, older_than: Duration) {
    let user = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry.metadata().is_ok_and(|found| {
                let age = found.modified().ok().and_then(|time| time.elapsed().ok());
                found.is_dir() && found.uid() == user && age.is_some_and(|age| age >= older_than)
            })
            && entry.path().join("ullage_agent.py").exists();
        if ours && File::open(entry.path()).is_ok_and(|directory| lock(&directory)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_directory_is_private_and_goes_away() {
        let files = AgentFiles::create().unwrap();
        let directory = files.directory.clone();
        assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(directory.join("sitecustomize.py").exists());
        assert!(files.socket().as_os_str().len() < 107);
        drop(files);
        assert!(!directory.exists());
    }

    #[test]
    fn what_a_killed_ullage_left_is_removed_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let living = AgentFiles::create_in(base.path()).unwrap();
        let killed = AgentFiles::create_in(base.path()).unwrap();
        let left = killed.directory.clone();
        // As SIGKILL does it: the lock goes, the files stay.
        std::mem::ManuallyDrop::new(killed)._lock = None;
        let foreign = base.path().join("ullage-mine");
        std::fs::create_dir(&foreign).unwrap();

        remove_abandoned(base.path(), Duration::from_secs(60));
        assert!(left.exists(), "it could be one that is just being made");
        remove_abandoned(base.path(), Duration::ZERO);
        assert!(!left.exists());
        assert!(living.directory.exists() && foreign.exists());
    }
}
