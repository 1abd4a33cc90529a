//! Copies of memory past the cache, for batches larger than what a cache would keep.
//!
//! A store into memory that is not in the cache first reads it; a streaming store does not. From some tens of MiB on
//! that read is a third of the traffic; below, the reader finds the bytes in the cache and is better served so.

/// Whole batches of at least so much are written past the cache.
pub(crate) const STREAMED: u64 = 24 << 20;

/// Copies `length` bytes that are a part of a large batch.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`]; and [`finish`] before anybody is told of the bytes.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    let head = to.align_offset(64).min(length);
    let lines = (length - head) / 64;
    // SAFETY: inside what the caller promised; SSE2 is a part of x86_64, and `line` is aligned to 64.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for line in 0..lines {
            let (source, target) = (from.add(head + 64 * line), to.add(head + 64 * line));
            for word in 0..4 {
                let bytes = _mm_loadu_si128(source.add(16 * word).cast::<__m128i>());
                _mm_stream_si128(target.add(16 * word).cast::<__m128i>(), bytes);
            }
        }
        let done = head + 64 * lines;
        std::ptr::copy_nonoverlapping(from.add(done), to.add(done), length - done);
    }
}

/// As above, through the cache.
///
/// # Safety
/// As above.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, length) };
}

/// Streamed bytes come before whatever this thread writes next.
pub(crate) fn finish() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence, a part of every x86_64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
