//! What watching costs: CPU clocks of this process and thread, and its largest resident set.

use rustix::time::{clock_gettime, ClockId};
use ullage_kernel::{KernelRoot, ProcessDir};
use ullage_model::{Bytes, Cost};

/// This process's own files, which are the live machine's also where the job's are a fixture.
pub(super) fn own_files() -> Option<ProcessDir> {
    let own = KernelRoot::live().process(rustix::process::getpid().as_raw_nonzero().get());
    own.ok().map(ProcessDir::keep_open)
}

pub(super) fn own_cost(own: Option<&ProcessDir>, cpu_ns: u64, buffer: &mut Vec<u8>) -> Cost {
    // ru_maxrss is in KiB on Linux (getrusage(2)); VmHWM says the same and needs no unsafe call.
    let status = own.and_then(|own| own.status(buffer).ok());
    let memory = status.and_then(|status| status.memory);
    Cost { cpu_ns, peak_rss: memory.map_or(Bytes(0), |memory| memory.peak_resident) }
}

/// CPU time of watching so far.
pub(super) fn watching_cpu_ns(whole_process: bool) -> u64 {
    if whole_process {
        nanoseconds(ClockId::ProcessCPUTime)
    } else {
        thread_cpu_ns()
    }
}

pub(super) fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

pub(super) fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
