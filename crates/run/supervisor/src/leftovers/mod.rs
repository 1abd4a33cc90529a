//! Shared segments that dead processes left: which are they, and how is one removed without harm?
//!
//! Only this user's own, in this program's /dev/shm and IPC namespace. Before anything is removed the kernel has to
//! say that nobody has it open or maps it, whoever that may be: see [`kernel_calls`]. What cannot be known is said:
//! [`Survey::cannot_know`].

mod decide;
mod kernel_calls;

use self::decide::{File, Helper, Living, Standing};
use self::kernel_calls::{sysv_remove, sysv_state, wanted_by_another, Lease};
use nix::errno::Errno;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags};
use rustix::time::{clock_gettime, ClockId};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use ullage_kernel::host::sysvipc::SysvSegment;
use ullage_kernel::KernelRoot;
use ullage_model::FilesystemUse;

/// The pid namespace of a machine's first process (include/linux/proc_ns.h, PROC_PID_INIT_INO).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Where a segment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, with the inode that was looked at.
    File {
        /// Its path.
        path: PathBuf,
        /// st_ino.
        inode: u64,
    },
    /// A System V segment.
    Sysv {
        /// shmid.
        id: i32,
        /// IPC key.
        key: i32,
    },
}

/// A segment of this user that somebody left, or that was looked at and is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// Where.
    pub place: Place,
    /// Pages that it holds.
    pub bytes: u64,
    /// Seconds since it was made, as far as the kernel tells.
    pub age_s: f64,
    /// Who made it, where that is known.
    pub maker: Option<i32>,
    /// Why it is an orphan, or why it is kept.
    pub because: String,
}

/// Number and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// Pages that they hold.
    pub bytes: u64,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// What may be removed, largest first.
    pub orphans: Vec<Leftover>,
    /// Unused, and kept all the same.
    pub retained: Vec<Leftover>,
    /// Of this user, and in use.
    pub in_use: Amount,
    /// Of this user, unused, and of no kind that is known to be temporary.
    pub unknown: Amount,
    /// Of other users.
    pub others: Amount,
    /// What could not be known, one sentence each.
    pub cannot_know: Vec<String>,
}

/// Why one was not removed after all.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Somebody has it open now.
    #[error("it is in use now")]
    InUse,
    /// Another segment has its name or number by now.
    #[error("it was replaced meanwhile")]
    Changed,
    /// It is gone already.
    #[error("it was removed already")]
    Gone,
    /// Its maker, or the helper of its job, was seen alive.
    #[error("{0}")]
    Retained(String),
    /// The kernel refused.
    #[error("{doing}: {errno}")]
    Failed {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        errno: Errno,
    },
}

/// Looks at every file right in `shm` (/dev/shm) and at every System V segment. Removes nothing.
pub fn survey(root: &KernelRoot, shm: &Path) -> Survey {
    let mut survey = Survey::default();
    let Some(living) = living(root, shm) else {
        survey.cannot_know.push("/proc cannot be listed, so no process is known to be dead.".into());
        return survey;
    };
    survey.cannot_know.extend(out_of_sight(root));
    match folder(shm) {
        Ok(dir) => files(&dir, shm, &living, &mut survey),
        Err(errno) => survey.cannot_know.push(format!("{} cannot be listed: {errno}.", shm.display())),
    }
    let rows = root.sysv_segments(&mut Vec::new()).unwrap_or_default();
    for row in rows {
        system_v(&row, &living, &mut survey);
    }
    survey.orphans.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| order(a).cmp(&order(b))));
    survey
}

/// Removes orphans, one by one.
#[derive(Debug)]
pub struct Remover<'a> {
    root: &'a KernelRoot,
    shm: &'a Path,
    living: Option<(Instant, Living)>,
}

impl<'a> Remover<'a> {
    /// For orphans that [`survey`] found there.
    pub fn new(root: &'a KernelRoot, shm: &'a Path) -> Remover<'a> {
        Remover { root, shm, living: None }
    }

    /// Removes one, after everything that made it an orphan was looked at once more; who lives, at most a second ago.
    pub fn remove(&mut self, leftover: &Leftover) -> Result<(), Refusal> {
        if self.living.as_ref().is_none_or(|(at, _)| at.elapsed() > Duration::from_secs(1)) {
            self.living = living(self.root, self.shm).map(|living| (Instant::now(), living));
        }
        let Some((_, living)) = &self.living else {
            return Err(Refusal::Retained(
                "/proc cannot be listed, so no process is known to be dead".into(),
            ));
        };
        match &leftover.place {
            Place::File { path, inode } => remove_file(self.shm, path, *inode, living),
            Place::Sysv { id, .. } => remove_sysv(self.root, *id, living),
        }
    }
}

fn order(leftover: &Leftover) -> String {
    match &leftover.place {
        Place::File { path, .. } => path.display().to_string(),
        Place::Sysv { id, .. } => format!("shmid {id:010}"),
    }
}

fn files(dir: &OwnedFd, shm: &Path, living: &Living, survey: &mut Survey) {
    let list = match rustix::fs::Dir::read_from(dir) {
        Ok(list) => list,
        Err(errno) => {
            survey.cannot_know.push(format!("{} cannot be listed: {errno}.", shm.display()));
            return;
        }
    };
    let (mut unproven, now) = (0u64, wall_clock());
    for entry in list.flatten() {
        let name = entry.file_name();
        if name.to_bytes() == b"." || name.to_bytes() == b".." {
            continue;
        }
        // What was removed meanwhile is not there.
        let Ok(stat) = stat(dir.as_fd(), name, false) else { continue };
        let bytes = stat.stx_blocks.saturating_mul(512);
        let plain = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
        if stat.stx_uid != rustix::process::geteuid().as_raw() {
            survey.others.add(bytes);
            continue;
        }
        let made = made(&stat);
        let file = File { name: name.to_bytes(), made, modified: stamp(stat.stx_mtime), now };
        let standing = if plain { decide::of_file(&file, living) } else { Standing::NotOurs };
        match in_use(dir, name, stat.stx_ino) {
            _ if !plain => survey.unknown.add(bytes),
            Ok(true) => survey.in_use.add(bytes),
            Err(()) if standing != Standing::NotOurs => unproven += 1,
            _ => {
                let path = shm.join(std::ffi::OsStr::from_bytes(name.to_bytes()));
                let place = Place::File { path, inode: stat.stx_ino };
                survey.sort(place, bytes, (now - made).max(0.0), standing);
            }
        }
    }
    if unproven > 0 {
        survey.cannot_know.push(format!(
            "{unproven} files may be in use (they cannot be opened, or fs.leases-enable is 0), and are left alone."
        ));
    }
}

fn system_v(row: &SysvSegment, living: &Living, survey: &mut Survey) {
    let bytes = row.allocated.0;
    if row.uid != rustix::process::geteuid().as_raw() {
        survey.others.add(bytes);
    } else if row.attached > 0 {
        survey.in_use.add(bytes);
    } else if let Ok(id) = i32::try_from(row.id) {
        let place = Place::Sysv { id, key: row.key };
        let age = (wall_clock() - row.changed as f64).max(0.0);
        survey.sort(place, bytes, age, decide::of_sysv(row.creator, row.last, row.changed as f64, living));
    }
}

impl Amount {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl Survey {
    fn sort(&mut self, place: Place, bytes: u64, age_s: f64, standing: Standing) {
        match standing {
            Standing::Orphan { maker, because } => {
                self.orphans.push(Leftover { place, bytes, age_s, maker, because })
            }
            Standing::Retained { because } => {
                self.retained.push(Leftover { place, bytes, age_s, maker: None, because });
            }
            Standing::NotOurs => self.unknown.add(bytes),
        }
    }
}

fn remove_file(shm: &Path, path: &Path, inode: u64, living: &Living) -> Result<(), Refusal> {
    let failed = |doing| {
        move |errno: rustix::io::Errno| Refusal::Failed {
            doing,
            errno: Errno::from_raw(errno.raw_os_error()),
        }
    };
    let dir = folder(shm).map_err(failed("open the folder"))?;
    let name = path.file_name().ok_or(Refusal::Changed)?;
    let file = open(&dir, name).map_err(|errno| match errno {
        rustix::io::Errno::NOENT => Refusal::Gone,
        errno => failed("open it")(errno),
    })?;
    let stat_now = stat(file.as_fd(), c"", true).map_err(failed("read it"))?;
    let own = stat_now.stx_uid == rustix::process::geteuid().as_raw();
    let plain = FileType::from_raw_mode(stat_now.stx_mode.into()) == FileType::RegularFile;
    if stat_now.stx_ino != inode || !own || !plain {
        return Err(Refusal::Changed);
    }
    let decided = decide::of_file(
        &File {
            name: name.as_bytes(),
            made: made(&stat_now),
            modified: stamp(stat_now.stx_mtime),
            now: wall_clock(),
        },
        living,
    );
    match decided {
        Standing::Orphan { .. } => {}
        Standing::Retained { because } => return Err(Refusal::Retained(because)),
        Standing::NotOurs => return Err(Refusal::Changed),
    }
    let watched = rustix::io::fcntl_dupfd_cloexec(&file, 0).map_err(failed("read it"))?;
    let lease = Lease::take(file).map_err(|errno| match errno {
        Errno::EAGAIN => Refusal::InUse,
        errno => Refusal::Failed { doing: "prove that no process has it open", errno },
    })?;
    // From here on whoever opens it waits; the name must still be that of the file that the lease is on.
    let named = stat(dir.as_fd(), name, false).map_err(|_| Refusal::Gone)?;
    if named.stx_ino != inode || wanted_by_another(watched.as_fd()) {
        return Err(Refusal::InUse);
    }
    let removed = rustix::fs::unlinkat(&dir, name, AtFlags::empty()).map_err(failed("remove it"));
    drop(lease);
    removed
}

fn remove_sysv(root: &KernelRoot, id: i32, living: &Living) -> Result<(), Refusal> {
    let rows = root.sysv_segments(&mut Vec::new()).unwrap_or_default();
    let row = rows.iter().find(|row| row.id == id as u64).ok_or(Refusal::Gone)?;
    match decide::of_sysv(row.creator, row.last, row.changed as f64, living) {
        Standing::Orphan { .. } => {}
        Standing::Retained { because } => return Err(Refusal::Retained(because)),
        Standing::NotOurs => return Err(Refusal::Changed),
    }
    let state = sysv_state(id).map_err(|_| Refusal::Gone)?;
    if state.uid != rustix::process::geteuid().as_raw() || state.creator != row.creator {
        return Err(Refusal::Changed);
    }
    if state.attached > 0 {
        return Err(Refusal::InUse);
    }
    sysv_remove(id).map_err(|errno| Refusal::Failed { doing: "remove it", errno })
}

/// Whether somebody has it open, as the kernel says; an error where that cannot be asked.
fn in_use(dir: &OwnedFd, name: &std::ffi::CStr, inode: u64) -> Result<bool, ()> {
    let file = open(dir, name).map_err(|_| ())?;
    let same = stat(file.as_fd(), c"", true).is_ok_and(|stat| stat.stx_ino == inode);
    match Lease::take(file) {
        Ok(_) if same => Ok(false),
        Err(Errno::EAGAIN) => Ok(true),
        _ => Err(()),
    }
}

fn open(dir: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, rustix::io::Errno> {
    // Not blocked by a pipe, nor led elsewhere by a link.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

fn folder(path: &Path) -> Result<OwnedFd, rustix::io::Errno> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn stat(
    dir: rustix::fd::BorrowedFd<'_>,
    name: impl rustix::path::Arg,
    itself: bool,
) -> Result<Statx, rustix::io::Errno> {
    let flags = if itself { AtFlags::EMPTY_PATH } else { AtFlags::SYMLINK_NOFOLLOW };
    rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)
}

fn made(stat: &Statx) -> f64 {
    let born = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    stamp(if born { stat.stx_btime } else { stat.stx_ctime })
}

fn stamp(time: rustix::fs::StatxTimestamp) -> f64 {
    time.tv_sec as f64 + f64::from(time.tv_nsec) / 1e9
}

fn wall_clock() -> f64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Every process that is seen, and the helpers of this user among them that see this very /dev/shm; none where /proc cannot be listed.
fn living(root: &KernelRoot, shm: &Path) -> Option<Living> {
    let time = clock_gettime(ClockId::Boottime);
    let boot = wall_clock() - (time.tv_sec as f64 + time.tv_nsec as f64 / 1e9);
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let device = rustix::fs::stat(shm).ok().map(|stat| stat.st_dev);
    let own = rustix::process::geteuid().as_raw();
    let (mut pids, mut buffer, mut living) = (Vec::new(), Vec::new(), Living::default());
    root.pids(&mut pids).ok()?;
    for (pid, _) in pids {
        let Ok(process) = root.process(pid) else { continue };
        let Ok(started) = process.stat(&mut buffer).map(|stat| stat.id.start.0) else { continue };
        living.started.insert(pid, boot + started as f64 / ticks);
        let words = process.command_line(&mut buffer).unwrap_or_default();
        let says = |text: &str| words.iter().any(|word| word.contains(text));
        let kind = if words.first().is_some_and(|word| word.ends_with("torch_shm_manager")) {
            Helper::Torch
        } else if says("resource_tracker") || says("semaphore_tracker") {
            Helper::Python
        } else {
            continue;
        };
        let elsewhere = process
            .filesystem("/dev/shm", FilesystemUse::Shm)
            .is_ok_and(|place| device.is_some_and(|device| place.device != device));
        // A helper runs as the user of its job.
        let another =
            process.status(&mut buffer).is_ok_and(|status| status.uid.is_some_and(|uid| uid != own));
        if !elsewhere && !another {
            living.helpers.push((kind, pid));
        }
    }
    Some(living)
}

/// What this program cannot see from where it runs.
fn out_of_sight(root: &KernelRoot) -> Option<String> {
    let own = root.process(rustix::process::getpid().as_raw_nonzero().get()).ok()?;
    let inside = own.namespace("pid").ok().flatten().is_none_or(|namespace| namespace != FIRST_PID_NAMESPACE);
    inside.then(|| {
        "This is a container: processes outside it, or in others that share this /dev/shm, are invisible. Files that they have open or map are detected and left alone; a file that they know only by name is not.".into()
    })
}

#[cfg(test)]
mod tests;
