//! What can go wrong with an arena, and what to do about it.

/// Why an arena could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    /// A call to the kernel failed.
    #[error("the arena could not {what}: {source}; {hint}")]
    Kernel {
        /// What was being done.
        what: &'static str,
        /// What it usually means.
        hint: &'static str,
        /// What the kernel said.
        source: rustix::io::Errno,
    },
    /// A descriptor that is no arena of this version.
    #[error("descriptor {fd} is no arena of this ullage: {why}; pass the descriptor of the arena itself, and use one version of ullage in all processes")]
    Foreign {
        /// Its number.
        fd: i32,
        /// What gave it away.
        why: &'static str,
    },
    /// A ticket that leads nowhere.
    #[error("a message refers to arena bytes that are not its own any more (offset {offset}, generation {generation}): it was taken already, or its sender's memory was reclaimed")]
    Stale {
        /// Offset in the arena.
        offset: u64,
        /// Generation of the ticket.
        generation: u32,
    },
    /// More memory would end the job.
    #[error("the arena needs {wanted} bytes more, and {because}; keep fewer batches, lower prefetch_factor or num_workers, or raise that limit")]
    NoRoom {
        /// Bytes wanted.
        wanted: u64,
        /// The limit that is in the way, with its figures.
        because: String,
    },
    /// The address space set aside is used up.
    #[error("the arena's {reserve} bytes of address space are used up; keep fewer batches, or set ULLAGE_ARENA_RESERVE higher")]
    ReserveUsedUp {
        /// Its size.
        reserve: u64,
    },
    /// A table in the header is full.
    #[error("the arena has no room for another {what} (at most {most} at a time)")]
    TableFull {
        /// Which table.
        what: &'static str,
        /// Its size.
        most: usize,
    },
}
