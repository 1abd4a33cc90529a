//! The two calls of the kernel that have no safe wrapper: a lease on a file (fcntl(2), F_SETLEASE), and the state and
//! removal of a System V segment (shmctl(2)).
//!
//! The surprise: a write lease is given only where nobody else, in whatever namespace and of whatever user, has the
//! file open, maps it, or has it in a message on its way through a socket. No list of processes can prove as much.

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Nobody else has this file open for as long as this lives: whoever opens it waits.
#[derive(Debug)]
pub(crate) struct Lease {
    // Closing the only descriptor of the open file ends the lease.
    _file: OwnedFd,
}

impl Lease {
    /// EAGAIN: somebody has it open or maps it. Leaves SIGIO blocked in this thread, because the kernel sends it to
    /// whoever holds a lease that another wants, and it would end this program.
    pub(crate) fn take(file: OwnedFd) -> Result<Lease, Errno> {
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGIO);
        signals.thread_block()?;
        #[expect(unsafe_code, reason = "nix and rustix have no F_SETLEASE")]
        // SAFETY: fcntl(F_SETLEASE) takes an int, touches no memory of this program, and the descriptor is open.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::c_int::from(F_WRLCK)) };
        Errno::result(result).map(|_| Lease { _file: file })
    }
}

/// `libc::F_WRLCK` in the width that F_SETLEASE documents.
const F_WRLCK: i16 = 1;

/// Whether somebody waits at this moment for the lease to end.
pub(crate) fn wanted_by_another(file: BorrowedFd<'_>) -> bool {
    #[expect(unsafe_code, reason = "nix and rustix have no F_GETLEASE")]
    // SAFETY: fcntl(F_GETLEASE) takes nothing and returns the lease, or what it is to become.
    let lease = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) };
    lease != libc::c_int::from(F_WRLCK)
}

/// What the kernel says of a System V segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SysvState {
    pub(crate) attached: u64,
    pub(crate) uid: u32,
    pub(crate) creator: i32,
}

/// Reads its state. EINVAL: there is none of this id.
pub(crate) fn sysv_state(id: i32) -> Result<SysvState, Errno> {
    let mut state = std::mem::MaybeUninit::<libc::shmid_ds>::zeroed();
    #[expect(unsafe_code, reason = "nix and rustix have no shmctl")]
    // SAFETY: IPC_STAT writes one shmid_ds to the pointer, which is that of a live value of this very type.
    let result = unsafe { libc::shmctl(id, libc::IPC_STAT, state.as_mut_ptr()) };
    Errno::result(result)?;
    #[expect(unsafe_code, reason = "see above")]
    // SAFETY: all bits zero are a valid shmid_ds, and the kernel has filled it.
    let state = unsafe { state.assume_init() };
    let (attached, uid, creator) = (state.shm_nattch, state.shm_perm.uid, state.shm_cpid);
    Ok(SysvState { attached, uid, creator })
}

/// Removes it: processes that attached it meanwhile keep it.
pub(crate) fn sysv_remove(id: i32) -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "nix and rustix have no shmctl")]
    // SAFETY: IPC_RMID uses no pointer.
    let result = unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    Errno::result(result).map(drop)
}
