//! Puts the agent on a job's path: Python files and a socket in a private directory.
//!
//! The surprise: the directory is not the recording's. A socket's path may be at most 107 bytes long
//! (unix(7)), and a recording may lie deep or on a read-only disk.

use crate::agent_code;
use anyhow::Context;
use rustix::fs::{flock, FlockOperation};
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ullage_kernel::root::KernelRoot;
use ullage_model::names;

// Names and contents of the files of python/ullage/agent, by the build script: the folder is the list.
include!(concat!(env!("OUT_DIR"), "/agent_parts.rs"));

/// python/agent, beside them.
const LIBRARY: (&str, &[u8]) =
    ("ullage_native.so", include_bytes!(concat!(env!("OUT_DIR"), "/ullage_native.so")));

/// Also what `ullage snapshot` asks a Python.
pub const FACTS: &str = include_str!("../../../../python/ullage/agent/facts.py");

const PREFIX: &str = "ullage-";

/// What a directory is called until it is locked, so that one with the final name and no lock is abandoned.
const UNLOCKED_PREFIX: &str = ".ullage-";

/// One that is still unlocked is abandoned when it is older than the moment between the two.
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
        let bases = bases(|name| std::env::var_os(name));
        bases.iter().for_each(|base| remove_abandoned(base, NOT_YET_LOCKED));
        let mut last = None;
        for base in bases {
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
            let name = format!("{pid}-{:x}", nanos.wrapping_add(attempt));
            let directory = base.join(format!("{PREFIX}{name}"));
            match make_locked(&base.join(format!("{UNLOCKED_PREFIX}{name}")), &directory) {
                Ok(lock) => {
                    let files = AgentFiles { directory, _lock: lock };
                    for (name, content) in PARTS.iter().chain([&LIBRARY]) {
                        std::fs::write(files.directory.join(name), content).with_context(|| {
                            format!("cannot write the agent into {}", files.directory.display())
                        })?;
                    }
                    make_readable(&files.directory)?;
                    files.add_byte_code();
                    return Ok(files);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| anyhow::anyhow!("no attempt"), anyhow::Error::from))
            .with_context(|| format!("cannot make a private directory in {}", base.display()))
    }

    /// Where that fails, the job's first Python compiles.
    fn add_byte_code(&self) {
        let Ok(command) = std::env::current_exe() else { return };
        let cached = self.directory.join("__pycache__");
        for code in agent_code::installed(&command, PARTS) {
            // Whole or not there: a full disk would leave half of it.
            for (name, parts) in code.files {
                let path = self.directory.join(name);
                if write_private(&path, &parts).is_err() {
                    let _ = std::fs::remove_file(&path);
                    return;
                }
            }
            let made = std::fs::create_dir(&cached);
            if made.is_ok() && std::fs::set_permissions(&cached, Permissions::from_mode(0o700)).is_err() {
                return;
            }
            for mut one in code.cached {
                let magic = [one.content[0], one.content[1], one.content[2], one.content[3]];
                let Some(header) = agent_code::header(magic, &self.directory.join(&one.source)) else {
                    return;
                };
                one.content[..header.len()].copy_from_slice(&header);
                if write_private(&cached.join(&one.name), &one.content).is_err() {
                    let _ = std::fs::remove_file(cached.join(&one.name));
                    return;
                }
            }
        }
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
        let mut variables = vec![
            ("PYTHONPATH".into(), path),
            (names::ENV_AGENT_SOCKET.into(), self.socket().into_os_string()),
        ];
        if let Some(filters) = own_filters() {
            variables.push((names::ENV_AGENT_FILTERS.into(), filters.to_string().into()));
        }
        variables
    }
}

/// How many filters of system calls (seccomp) this process is behind, as its job is: a Python behind more is in a sandbox,
/// where the agent stays silent.
fn own_filters() -> Option<u64> {
    let pid = i32::try_from(std::process::id()).ok()?;
    KernelRoot::live().process(pid).ok()?.filters(&mut Vec::new()).ok()?
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

/// Directories that may hold the agent's, best first. A relative one would mean another directory to each process
/// of the job that changes its own, so that Python would import the agent from wherever it stands.
fn bases(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(variable).map(PathBuf::from);
    let mut bases: Vec<PathBuf> = set.filter(|base| base.is_absolute()).collect();
    bases.extend(["/tmp".into(), "/dev/shm".into()]);
    bases
}

/// A new private directory, with its lock where the file system has locks.
fn make_locked(unlocked: &Path, directory: &Path) -> std::io::Result<Option<File>> {
    std::fs::DirBuilder::new().mode(0o700).create(unlocked)?;
    // The umask may have taken bits away.
    let made = std::fs::set_permissions(unlocked, Permissions::from_mode(0o700)).and_then(|()| {
        let lock = File::open(unlocked).ok().filter(lock);
        std::fs::rename(unlocked, directory).map(|()| lock)
    });
    made.inspect_err(|_| drop(std::fs::remove_dir(unlocked)))
}

fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    std::fs::write(path, content)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))
}

/// The job's Pythons read the files, whatever the umask was.
fn make_readable(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        std::fs::set_permissions(entry?.path(), Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Takes the lock that says "in use"; false where another ullage holds it.
fn lock(directory: &File) -> bool {
    flock(directory, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Removes what a SIGKILL of ullage left behind: our user's directories that nobody holds locked. A job that outlived
/// its ullage loses nothing but a socket that nobody reads.
fn remove_abandoned(base: &Path, not_yet_locked: Duration) {
    let user = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let unlocked = is_named(name.as_encoded_bytes(), UNLOCKED_PREFIX);
        if !unlocked && !is_named(name.as_encoded_bytes(), PREFIX) {
            continue;
        }
        let ours = entry.metadata().is_ok_and(|found| {
            let age = found.modified().ok().and_then(|time| time.elapsed().ok());
            let old = || age.is_some_and(|age| age >= not_yet_locked);
            found.is_dir() && found.uid() == user && (!unlocked || old())
        });
        if ours && File::open(entry.path()).is_ok_and(|directory| lock(&directory)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The prefix, a pid, a dash and a hexadecimal number.
fn is_named(name: &[u8], prefix: &str) -> bool {
    let rest = name.strip_prefix(prefix.as_bytes()).and_then(|rest| std::str::from_utf8(rest).ok());
    rest.and_then(|rest| rest.split_once('-')).is_some_and(|(pid, number)| {
        let all = |text: &str, is: fn(&char) -> bool| !text.is_empty() && text.chars().all(|c| is(&c));
        all(pid, char::is_ascii_digit) && all(number, char::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn no_relative_directory_gets_onto_the_path() {
        let bases = |runtime: &str, temporary: &str| {
            super::bases(|name| Some(if name == "TMPDIR" { temporary.into() } else { runtime.into() }))
        };
        let last = ["/tmp", "/dev/shm"].map(PathBuf::from);
        assert_eq!(bases("", ""), last);
        assert_eq!(bases("run", "./tmp"), last);
        assert_eq!(bases("/run/user/1", "")[0], PathBuf::from("/run/user/1"));
        assert_eq!(bases("", "/scratch").len(), 3);
    }

    /// Under a umask of 0777, which is that of the whole process: the test runs itself again under a shell.
    #[test]
    fn a_umask_takes_no_right_from_the_directory() {
        if let Some(base) = std::env::var_os("ULLAGE_TEST_UMASK") {
            let files = AgentFiles::create_in(Path::new(&base)).unwrap();
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&files.directory), 0o700);
            assert_eq!(mode(&files.directory.join("sitecustomize.py")), 0o600);
            return println!("was private");
        }
        let base = tempfile::tempdir().unwrap();
        let output = std::process::Command::new("sh")
            .args(["-c", "umask 0777; exec \"$0\" --nocapture a_umask_takes_no_right"])
            .arg(std::env::current_exe().unwrap())
            .env("ULLAGE_TEST_UMASK", base.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("was private"), "{said}");
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_ullage_left_is_removed_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let living = AgentFiles::create_in(base.path()).unwrap();
        let killed = AgentFiles::create_in(base.path()).unwrap();
        let left = killed.directory.clone();
        // As SIGKILL does it: the lock goes, the files stay.
        std::mem::ManuallyDrop::new(killed)._lock = None;
        let foreign = ["ullage-mine", "ullage-4711-run", "ullage--1f", "ullage-4711"];
        let foreign = foreign.map(|name| base.path().join(name));
        let being_made = base.path().join(".ullage-4711-1f");
        foreign.iter().chain([&being_made]).for_each(|path| std::fs::create_dir(path).unwrap());

        remove_abandoned(base.path(), Duration::from_secs(60));
        assert!(!left.exists(), "at once: with its name and no lock it can only be abandoned");
        assert!(living.directory.exists() && foreign.iter().all(|path| path.exists()));
        assert!(being_made.exists(), "it could be about to be locked");
        remove_abandoned(base.path(), Duration::ZERO);
        assert!(!being_made.exists() && living.directory.exists());
    }
}
