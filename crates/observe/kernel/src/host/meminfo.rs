//! `/proc/meminfo`: memory of the machine (proc_meminfo(5)).
//!
//! ```text
//! MemTotal:       24684096 kB
//! CommitLimit:    12342048 kB
//! ```

use crate::error::ParseError;
use crate::scan::{lines, number, words};
use ullage_model::host::{HostKernel, HostMemory};
use ullage_model::Bytes;

/// Parses `meminfo`; MemTotal must be there, MemAvailable falls back to MemFree on kernels before 3.14.
pub fn parse_meminfo(bytes: &[u8]) -> Result<HostMemory, ParseError> {
    let mut memory = HostMemory::default();
    let mut available = None;
    for line in lines(bytes) {
        let mut words = words(line);
        let (Some(key), Some(kib)) = (words.next(), words.next().and_then(number)) else { continue };
        let value = Bytes::from_kib(kib);
        match key {
            b"MemTotal:" => memory.total = value,
            b"MemFree:" => memory.free = value,
            b"MemAvailable:" => available = Some(value),
            b"SwapTotal:" => memory.swap_total = value,
            b"SwapFree:" => memory.swap_free = value,
            b"Shmem:" => memory.shared = value,
            b"Cached:" => memory.cached = value,
            b"AnonPages:" => memory.anonymous = value,
            b"CommitLimit:" => memory.commit_limit = value,
            b"Committed_AS:" => memory.committed = value,
            _ => {}
        }
    }
    if memory.total == Bytes(0) {
        return Err(ParseError::at(0, "MemTotal in kB"));
    }
    memory.available = available.unwrap_or(memory.free);
    Ok(memory)
}

/// Parses the lines for what no process owns. Before 4.19 there is no line Hugetlb: then it is the pages of the
/// default size.
pub fn parse_kernel_memory(bytes: &[u8]) -> HostKernel {
    let mut kernel = HostKernel::default();
    let (mut hugetlb, mut pages, mut free, mut page_size) = (None, 0u64, 0u64, Bytes(0));
    for line in lines(bytes) {
        let mut words = words(line);
        let (Some(key), Some(count)) = (words.next(), words.next().and_then(number)) else { continue };
        let value = Bytes::from_kib(count);
        match key {
            b"Buffers:" => kernel.buffers = value,
            b"SReclaimable:" => kernel.slab_reclaimable = value,
            b"SUnreclaim:" => kernel.slab_unreclaimable = value,
            b"PageTables:" | b"SecPageTables:" | b"KernelStack:" | b"Percpu:" | b"VmallocUsed:" => {
                kernel.tables = kernel.tables.saturating_add(value);
            }
            b"AnonHugePages:" => kernel.anonymous_huge = value,
            b"Hugetlb:" => hugetlb = Some(value),
            b"HugePages_Total:" => pages = count,
            b"HugePages_Free:" => free = count,
            b"Hugepagesize:" => page_size = value,
            _ => {}
        }
    }
    kernel.hugetlb = hugetlb.unwrap_or(Bytes(pages.saturating_mul(page_size.0)));
    kernel.hugetlb_free = Bytes(free.saturating_mul(page_size.0));
    kernel
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &[u8] = include_bytes!("../../fixtures/host/meminfo");

    #[test]
    fn a_captured_file_is_read_in_bytes() {
        let memory = parse_meminfo(REAL).unwrap();
        assert_eq!(memory.total, Bytes(24684096 * 1024));
        assert!(memory.available > Bytes(0) && memory.commit_limit > memory.committed);
    }

    #[test]
    fn what_no_process_owns_is_read_and_huge_pages_are_counted_in_bytes() {
        let kernel = parse_kernel_memory(REAL);
        assert!(kernel.slab_unreclaimable > Bytes(0) && kernel.tables > Bytes(0));
        let old = b"HugePages_Total: 5\nHugePages_Free: 3\nHugepagesize: 2048 kB\n";
        let kernel = parse_kernel_memory(old);
        assert_eq!((kernel.hugetlb, kernel.hugetlb_free), (Bytes(10 << 20), Bytes(6 << 20)));
        assert_eq!(parse_kernel_memory(b"Hugetlb: 8 kB\n").hugetlb, Bytes(8192));
    }

    #[test]
    fn a_file_without_total_is_refused() {
        assert!(parse_meminfo(b"MemFree: 12 kB\n").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = (parse_meminfo(&bytes), parse_kernel_memory(&bytes));
        }
    }
}
