//! What the sampler keeps of one process of the job between ticks.

use crate::forecast::{Counted, Signs, Trend};
use crate::roles::{Numbered, Program};
use ullage_kernel::process::maps::{DataFile, MapsCount};
use ullage_kernel::process::stat::Stat;
use ullage_kernel::ProcessDir;
use ullage_model::{
    At, Ending, Limit, Measured, ProcessFacts, ProcessId, ProcessMemory, ResourceLimits, Role,
};

/// Sizes are read again after this many seconds even where `stat` shows that nothing moved, up to half as much later.
const SIZES_EVERY_S: f64 = 10.0;

/// What `stat` tells of a process's memory. While none of it moves, its sizes in `status` are as they were: whatever is
/// mapped, faulted in, taken away by the kernel or given back shows in one of them. (What does not, locking pages that are
/// there already, is seen at the next reading after [`SIZES_EVERY_S`].)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quiet {
    /// Minor and major.
    pub(crate) faults: (u64, u64),
    /// Address space, bytes, and resident pages.
    pub(crate) sizes: (u64, u64),
    pub(crate) threads: u32,
}

impl Quiet {
    pub(crate) fn of(stat: &Stat<'_>) -> Quiet {
        Quiet { faults: (stat.minor_faults, stat.major_faults), sizes: stat.sizes, threads: stat.threads }
    }
}

/// A count of mappings that is not done yet: too many for one tick.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) count: MapsCount,
    /// The cheap signs when it began.
    pub(crate) signs: Signs,
    /// CPU that it took by now, nanoseconds.
    pub(crate) spent_ns: f64,
}

/// One process.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: ProcessId,
    pub(crate) parent: i32,
    pub(crate) comm: String,
    /// startstack: another one after exec.
    pub(crate) image: u64,
    pub(crate) program: Program,
    /// It runs the image of the parent that it was first seen with.
    pub(crate) forked: bool,
    /// That parent.
    pub(crate) forked_from: Option<ProcessId>,
    /// The same for all that were forked from one another.
    pub(crate) family: u64,
    /// Real user id.
    pub(crate) user: Option<u32>,
    /// Parent when first seen; orphans keep it.
    pub(crate) born_to: i32,
    /// How its launcher numbered it, by its environment.
    pub(crate) rank: Option<Numbered>,
    pub(crate) role: Role,
    /// The agent said so; nothing from outside changes it.
    pub(crate) role_exact: bool,
    pub(crate) limits: Measured<ResourceLimits>,
    /// When it was first seen.
    pub(crate) joined_at: At,
    /// When limits and cgroups were read last.
    pub(crate) settings_at: At,
    pub(crate) cgroups: Vec<String>,
    pub(crate) mount_namespace: Option<u64>,
    pub(crate) counted: Option<Counted>,
    /// One that goes on.
    pub(crate) counting: Option<Counting>,
    /// Data files that it had mapped at the last count.
    pub(crate) data_files: Vec<DataFile>,
    /// When a count was last tried, so that an unreadable maps is not tried every tick.
    pub(crate) counted_at: Option<At>,
    pub(crate) mappings: Trend,
    pub(crate) descriptors: Trend,
    pub(crate) address_space: Trend,
    /// Descriptors when their links were last read.
    pub(crate) kinds_at_count: Option<u64>,
    /// Its files, where they stay open.
    pub(crate) files: Option<ProcessDir>,
    /// Sizes as last read, when, and what `stat` showed then.
    pub(crate) sizes: Option<(At, Quiet, ProcessMemory)>,
    /// Seen as a zombie: its wait status, where this user may know it.
    pub(crate) ending: Option<Measured<Ending>>,
}

impl Member {
    /// A member of whom nothing but these facts is known.
    pub(crate) fn new(facts: &ProcessFacts, at: At) -> Member {
        Member {
            id: facts.id,
            parent: facts.parent,
            comm: facts.comm.clone(),
            image: 0,
            program: Program::Command,
            forked: false,
            forked_from: None,
            family: 0,
            user: facts.uid.known(),
            born_to: facts.parent,
            rank: None,
            role: facts.role.clone(),
            role_exact: false,
            limits: facts.limits,
            joined_at: at,
            settings_at: at,
            cgroups: facts.cgroups.clone(),
            mount_namespace: None,
            counted: None,
            counting: None,
            data_files: Vec::new(),
            counted_at: None,
            mappings: Trend::default(),
            descriptors: Trend::default(),
            address_space: Trend::default(),
            kinds_at_count: None,
            files: None,
            sizes: None,
            ending: None,
        }
    }

    /// Mappings now, as far as the last count and the signs tell; of one that was never counted to the end, what was
    /// counted of it.
    pub(crate) fn estimate(&self, signs: Signs) -> Option<u64> {
        let so_far = self.counting.as_ref().map(|counting| counting.count.so_far());
        self.counted.map(|counted| counted.estimate(signs)).max(so_far)
    }

    /// Mappings that a reading of all of them has to go through: as last counted; none before the first count; and where a
    /// count goes on that no single tick pays for, more than anything else may.
    pub(crate) fn mappings_to_read(&self) -> Option<u64> {
        match &self.counting {
            Some(_) => Some(u64::MAX),
            None => self.counted.map(|counted| counted.count),
        }
    }

    /// Its sizes as they were read before, where nothing moved since.
    pub(crate) fn sizes_unmoved(&self, now: At, quiet: Quiet) -> Option<ProcessMemory> {
        let (at, before, memory) = self.sizes?;
        // Not all processes in the same tick.
        let later = f64::from(self.id.pid.rem_euclid(8)) / 16.0;
        (before == quiet && now.since(at) < SIZES_EVERY_S * (1.0 + later)).then_some(memory)
    }

    /// Soft limit of open files.
    pub(crate) fn open_files(&self) -> Limit {
        self.limits.as_known().map_or(Limit::Unlimited, |limits| limits.open_files)
    }

    /// Whether descriptor links are worth reading: a fifth more (and 64) than when they were read, or above
    /// 70 % of the limit and a twentieth more.
    pub(crate) fn kinds_stale(&self, count: u64) -> bool {
        let before = self.kinds_at_count.unwrap_or(0);
        let near =
            self.open_files().at().is_some_and(|limit| count.saturating_mul(10) >= limit.saturating_mul(7));
        let moved = count.abs_diff(before);
        moved >= (before / 5).max(64) || (near && moved > before / 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::ClockTicks;

    fn facts() -> ProcessFacts {
        ProcessFacts {
            id: ProcessId { pid: 1, start: ClockTicks(1) },
            parent: 0,
            uid: Measured::default(),
            command_line: vec![],
            comm: "x".into(),
            limits: Measured::Known(ResourceLimits {
                open_files: Limit::At(1000),
                open_files_hard: Limit::At(1000),
                address_space: Limit::Unlimited,
                processes: Limit::Unlimited,
                locked_memory: Limit::Unlimited,
                stack: Limit::Unlimited,
                file_size: Limit::Unlimited,
            }),
            cgroups: vec![],
            role: Role::Other,
            seccomp: Measured::default(),
            cores_allowed: Measured::default(),
            forked_from: None,
        }
    }

    #[test]
    fn sizes_hold_while_nothing_moves_and_not_for_ever() {
        let seconds = At::from_seconds;
        let quiet = Quiet { faults: (5, 0), sizes: (1 << 30, 100), threads: 1 };
        let mut member = Member::new(&facts(), seconds(0.0));
        assert_eq!(member.sizes_unmoved(seconds(1.0), quiet), None, "never read");
        let memory = ProcessMemory::default();
        member.sizes = Some((seconds(1.0), quiet, memory));
        assert_eq!(member.sizes_unmoved(seconds(2.0), quiet), Some(memory));
        assert_eq!(member.sizes_unmoved(seconds(2.0), Quiet { faults: (6, 0), ..quiet }), None);
        assert_eq!(member.sizes_unmoved(seconds(2.0), Quiet { sizes: (1 << 30, 99), ..quiet }), None);
        assert_eq!(member.sizes_unmoved(seconds(2.0), Quiet { sizes: (1 << 29, 100), ..quiet }), None);
        assert_eq!(member.sizes_unmoved(seconds(16.5), quiet), None, "too long ago");
    }

    #[test]
    fn links_are_read_when_the_count_moved_or_the_limit_is_near() {
        let mut member = Member::new(&facts(), At(0));
        assert!(!member.kinds_stale(10));
        assert!(member.kinds_stale(70));
        member.kinds_at_count = Some(680);
        assert!(!member.kinds_stale(690));
        assert!(member.kinds_stale(720), "70 % of the limit");
        member.kinds_at_count = Some(720);
        assert!(!member.kinds_stale(730));
    }
}
