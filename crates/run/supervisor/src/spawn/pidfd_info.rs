//! The ioctl `PIDFD_GET_INFO` (include/uapi/linux/pidfd.h, kernel 6.13; exit information from 6.15). Stands
//! beside spawn so that all unsafe of this crate is in one folder.

use nix::errno::Errno;
use rustix::fd::{AsRawFd, BorrowedFd};
use ullage_model::Ending;

/// `struct pidfd_info` in its first published size; the kernel fills as much as the ioctl's number says.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct PidfdInfo {
    mask: u64,
    cgroupid: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const _: () = assert!(std::mem::size_of::<PidfdInfo>() == 64);

/// PIDFD_INFO_EXIT: exit_code is wanted, and on return, is there.
const INFO_EXIT: u64 = 1 << 3;

mod ioctl {
    // PIDFS_IOCTL_MAGIC 0xFF, number 11, read and write.
    nix::ioctl_readwrite!(pidfd_get_info, 0xFF, 11, super::PidfdInfo);
}

/// How the process ended; none while it has not been reaped. Errors: ENOTTY before 6.13, EINVAL before 6.15.
pub(crate) fn exit_info(pidfd: BorrowedFd<'_>) -> Result<Option<Ending>, Errno> {
    let mut info = PidfdInfo { mask: INFO_EXIT, ..PidfdInfo::default() };
    #[expect(unsafe_code, reason = "one ioctl on a descriptor that the caller keeps open")]
    // SAFETY: the descriptor is open for the call, `info` is a live, writable struct of the very size that the
    // ioctl's number carries, and the kernel writes no more than that.
    unsafe { ioctl::pidfd_get_info(pidfd.as_raw_fd(), &mut info) }?;
    Ok((info.mask & INFO_EXIT != 0).then(|| Ending::from_wait_status(info.exit_code)))
}
