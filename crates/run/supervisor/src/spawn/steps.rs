//! What the job's process does to itself between fork and exec so that it meets another machine's bounds.
//!
//! The surprise: nothing may be allocated there, and a step that is refused is no reason not to start; so all is
//! prepared before the fork, and the refusals come back through a pipe that exec closes.

use crate::imitate::{Imitation, Step};
use nix::errno::Errno;
use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::resource::{setrlimit, Resource};
use rustix::thread::CpuSet;
use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};

const STEPS: [Step; 5] = [Step::Group, Step::Shm, Step::HugePages, Step::Cores, Step::Limits];

/// Prepared before the fork, taken after it.
#[derive(Debug)]
pub(super) struct Steps {
    groups: Vec<File>,
    shm: Option<CString>,
    no_huge_pages: bool,
    cores: Option<CpuSet>,
    limits: Vec<(Resource, u64, u64)>,
    refusals: PipeWriter,
}

/// Reads what the child could not do, once it has executed.
#[derive(Debug)]
pub(super) struct Refusals(PipeReader);

impl Steps {
    pub(super) fn prepare(imitation: &Imitation) -> io::Result<(Steps, Refusals)> {
        let (reader, refusals) = io::pipe()?;
        let groups = imitation.groups.iter().map(|path| OpenOptions::new().write(true).open(path));
        let steps = Steps {
            groups: groups.collect::<io::Result<_>>()?,
            shm: imitation.shm.as_ref().and_then(|options| CString::new(options.as_str()).ok()),
            no_huge_pages: imitation.no_huge_pages,
            cores: imitation.cores.map(first_cores).transpose()?,
            limits: imitation.limits.clone(),
            refusals,
        };
        Ok((steps, Refusals(reader)))
    }

    /// In the child.
    pub(super) fn take(&mut self) {
        for group in &mut self.groups {
            if let Err(error) = group.write_all(b"0") {
                report(&mut self.refusals, 0, error.raw_os_error().unwrap_or(0));
            }
        }
        if let Some(options) = &self.shm {
            if let Err(errno) = own_shm(options) {
                report(&mut self.refusals, 1, errno as i32);
            }
        }
        if self.no_huge_pages {
            if let Err(errno) = nix::sys::prctl::set_thp_disable(true) {
                report(&mut self.refusals, 2, errno as i32);
            }
        }
        if let Some(cores) = &self.cores {
            if let Err(errno) = rustix::thread::sched_setaffinity(None, cores) {
                report(&mut self.refusals, 3, errno.raw_os_error());
            }
        }
        // Last: a limit of address space or files could stand in the way of the others.
        for (resource, soft, hard) in &self.limits {
            if let Err(errno) = setrlimit(*resource, *soft, *hard) {
                report(&mut self.refusals, 4, errno as i32);
            }
        }
    }
}

impl Refusals {
    /// In the parent, after the child has executed or failed to.
    pub(super) fn read(mut self) -> Vec<(Step, io::Error)> {
        let mut bytes = Vec::new();
        let _ = self.0.read_to_end(&mut bytes);
        bytes
            .chunks_exact(5)
            .filter_map(|one| {
                let errno = i32::from_ne_bytes(one[1..].try_into().ok()?);
                Some((*STEPS.get(usize::from(one[0]))?, io::Error::from_raw_os_error(errno)))
            })
            .collect()
    }
}

fn report(refusals: &mut PipeWriter, step: u8, errno: i32) {
    let mut record = [step, 0, 0, 0, 0];
    record[1..].copy_from_slice(&errno.to_ne_bytes());
    // A pipe that is full or gone: the refusal is not told.
    let _ = refusals.write(&record);
}

/// A mount namespace of its own, with a tmpfs on /dev/shm that nobody else sees.
fn own_shm(options: &CStr) -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none: Option<&CStr> = None;
    mount(none, c"/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some(c"tmpfs"), c"/dev/shm", Some(c"tmpfs"), flags, Some(options))
}

/// The first so many of the cores that this process may use.
fn first_cores(wanted: u64) -> io::Result<CpuSet> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let mut chosen = CpuSet::new();
    let cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    cores.take(usize::try_from(wanted).unwrap_or(usize::MAX)).for_each(|core| chosen.set(core));
    Ok(chosen)
}
