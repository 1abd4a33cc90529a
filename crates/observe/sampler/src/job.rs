//! Which processes belong to the job: its main process and every descendant, re-parented ones too.
//!
//! Data: one listing of /proc a tick in which a pid was given, and `stat` of pids that are new in it. A child whose parent ended before
//! it was seen hangs below the subreaper. Once in the job, always in the job. The surprise: a pid that was
//! reused between two ticks shows by the inode of its /proc directory, so that known pids need no `stat`.

use std::collections::{HashMap, HashSet};
use ullage_kernel::KernelRoot;
use ullage_model::{At, ProcessId};

/// How far up a chain of unknown parents is followed.
const CHAIN: usize = 64;

/// Membership, by pid.
#[derive(Debug)]
pub struct Job {
    main: ProcessId,
    reaper: Option<i32>,
    ignored: HashSet<i32>,
    /// Inode of the /proc directory, and the identity where it is of the job.
    known: HashMap<i32, (u64, Option<ProcessId>)>,
    listing: Vec<(i32, u64)>,
    /// The newest pid before the last listing, and when that was; none where something was left undecided by it.
    listed: Option<(u64, At)>,
    buffer: Vec<u8>,
}

/// /proc is listed after this many seconds even where no pid was given since: not every /proc tells it truly.
const LIST_EVERY_S: f64 = 5.0;

/// What changed since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New processes of the job with their parent, parents before children.
    pub joined: Vec<ProcessId>,
    /// Processes of the job that are no longer there.
    pub left: Vec<ProcessId>,
}

impl Job {
    /// A job of this main process, whose orphans go to `reaper`.
    pub fn new(main: ProcessId, reaper: Option<i32>) -> Job {
        Job {
            main,
            reaper,
            ignored: HashSet::new(),
            known: HashMap::new(),
            listing: Vec::new(),
            listed: None,
            buffer: Vec::new(),
        }
    }

    /// A child of the reaper that is not of the job (a helper of ullage itself).
    pub fn ignore(&mut self, pid: i32) {
        self.ignored.insert(pid);
    }

    /// True where this very process is of the job.
    pub fn contains(&self, id: ProcessId) -> bool {
        self.known.get(&id.pid).is_some_and(|(_, member)| *member == Some(id))
    }

    /// The member of this pid.
    pub fn member(&self, pid: i32) -> Option<ProcessId> {
        self.known.get(&pid).and_then(|(_, member)| *member)
    }

    /// All members, in no order.
    pub fn members(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.known.values().filter_map(|(_, member)| *member)
    }

    /// A member that ended while it was read.
    pub fn forget(&mut self, id: ProcessId) {
        if self.contains(id) {
            self.known.remove(&id.pid);
        }
    }

    /// Takes a process in that is known to be of the job (by its cgroup, or by its agent).
    pub fn admit(&mut self, root: &KernelRoot, pid: i32) -> Option<ProcessId> {
        if let Some(id) = self.member(pid) {
            return Some(id);
        }
        if Some(pid) == self.reaper || self.ignored.contains(&pid) {
            return None;
        }
        let (id, _) = self.stat(root, pid)?;
        // The inode is learned at the next listing.
        self.known.insert(pid, (0, Some(id)));
        Some(id)
    }

    /// Lists /proc and tells what changed. Where it cannot be listed, nothing changes; where no pid was given since the last
    /// time there is nobody new, and who is gone shows when it is read.
    pub fn refresh(&mut self, root: &KernelRoot, now: At) -> Changes {
        let mut changes = Changes::default();
        let newest = root.newest_pid(&mut self.buffer).known();
        if let (Some((before, at)), Some(newest)) = (self.listed, newest) {
            if before == newest && now.since(at) < LIST_EVERY_S {
                return changes;
            }
        }
        self.listed = newest.map(|newest| (newest, now));
        let mut listing = std::mem::take(&mut self.listing);
        if root.pids(&mut listing).is_err() {
            self.listing = listing;
            return changes;
        }
        // Ascending, so that parents mostly come first.
        listing.sort_unstable();
        self.known.retain(|pid, (_, member)| {
            let there = listing.binary_search_by_key(pid, |entry| entry.0).is_ok();
            if !there {
                changes.left.extend(*member);
            }
            there
        });
        for &(pid, inode) in &listing {
            match self.known.get(&pid).copied() {
                Some((seen, _)) if seen == inode => continue,
                Some((_, Some(member))) => {
                    // Another inode: reused, or the kernel dropped its cache of the directory.
                    if self.stat(root, pid).is_some_and(|(id, _)| id == member) {
                        self.known.insert(pid, (inode, Some(member)));
                        continue;
                    }
                    changes.left.push(member);
                    self.known.remove(&pid);
                }
                _ => {}
            }
            self.decide(root, pid, inode, &mut changes.joined);
        }
        self.listing = listing;
        changes
    }

    /// Decides about a new pid, and on the way about parents that are new too.
    fn decide(&mut self, root: &KernelRoot, pid: i32, inode: u64, joined: &mut Vec<ProcessId>) {
        let mut chain: Vec<ProcessId> = Vec::new();
        let mut current = pid;
        let of_job = loop {
            let Some((id, parent)) = self.stat(root, current) else {
                // An ancestor ended meanwhile: the child has another parent now. Decided at the next tick.
                self.listed = None;
                return;
            };
            chain.push(id);
            if id == self.main || (Some(parent) == self.reaper && !self.ignored.contains(&current)) {
                break true;
            }
            if parent <= 0 || Some(parent) == self.reaper || chain.len() >= CHAIN {
                break false;
            }
            // A parent's pid may be stale in `known` only where it was reused within this very tick.
            if let Some((_, member)) = self.known.get(&parent) {
                break member.is_some();
            }
            current = parent;
        };
        for id in chain.into_iter().rev() {
            // The inode of a parent met on the way is learned when the listing comes to it.
            let inode = if id.pid == pid { inode } else { 0 };
            let mine = of_job && Some(id.pid) != self.reaper;
            self.known.insert(id.pid, (inode, mine.then_some(id)));
            if mine {
                joined.push(id);
            }
        }
    }

    fn stat(&mut self, root: &KernelRoot, pid: i32) -> Option<(ProcessId, i32)> {
        let process = root.process(pid).ok()?;
        let stat = process.stat(&mut self.buffer).ok()?;
        Some((stat.id, stat.parent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::ClockTicks;
    use ullage_testing::FakeRoot;

    fn id(pid: i32, start: u64) -> ProcessId {
        ProcessId { pid, start: ClockTicks(start) }
    }

    fn job() -> Job {
        Job::new(id(10, 100), Some(5))
    }

    #[test]
    fn descendants_orphans_and_nobody_else() {
        let fake = FakeRoot::new();
        fake.process(1).parent(0).write();
        fake.process(5).parent(1).write();
        fake.process(10).parent(5).start(100).write();
        fake.process(11).parent(10).write();
        fake.process(9).parent(11).comm("wrapped pid").write();
        fake.process(12).parent(5).comm("orphan").write();
        fake.process(13).parent(1).comm("stranger").write();
        let mut job = job();
        let mut joined: Vec<i32> = job.refresh(&fake.root(), At(0)).joined.iter().map(|id| id.pid).collect();
        joined.sort_unstable();
        assert_eq!(joined, [9, 10, 11, 12]);
        assert_eq!(job.refresh(&fake.root(), At(0)), Changes::default(), "nothing new");
    }

    #[test]
    fn proc_is_listed_when_a_pid_was_given_and_after_a_while() {
        let fake = FakeRoot::new();
        let newest = |pid: i32| {
            fake.file("proc/loadavg", format!("0.20 0.18 0.12 1/80 {pid}\n"));
        };
        fake.process(10).parent(5).start(100).write();
        newest(10);
        let mut job = job();
        let mut joined = |at: f64| job.refresh(&fake.root(), At::from_seconds(at)).joined.len();
        assert_eq!(joined(0.0), 1);
        fake.process(11).parent(10).write();
        assert_eq!(joined(1.0), 0, "nobody can be new");
        newest(11);
        assert_eq!(joined(2.0), 1);
        fake.process(12).parent(10).write();
        assert_eq!(joined(6.9), 0);
        assert_eq!(joined(7.1), 1, "the file did not tell");
    }

    #[test]
    fn a_member_stays_when_its_parent_ends() {
        let fake = FakeRoot::new();
        fake.process(10).parent(5).start(100).write();
        fake.process(11).parent(10).write();
        let mut job = job();
        job.refresh(&fake.root(), At(0));
        fake.remove(10);
        fake.process(11).parent(1).write();
        let changes = job.refresh(&fake.root(), At(0));
        assert_eq!(changes.left, [id(10, 100)]);
        assert!(job.member(11).is_some());
    }

    #[test]
    fn a_reused_pid_is_a_new_process() {
        let fake = FakeRoot::new();
        fake.process(10).parent(5).start(100).write();
        fake.process(11).parent(10).start(200).write();
        let mut job = job();
        job.refresh(&fake.root(), At(0));
        fake.rename_away(11);
        fake.process(11).parent(1).start(300).write();
        let changes = job.refresh(&fake.root(), At(0));
        assert_eq!(changes.left, [id(11, 200)]);
        assert!(changes.joined.is_empty() && job.member(11).is_none());
    }

    #[test]
    fn helpers_of_the_reaper_are_not_of_the_job() {
        let fake = FakeRoot::new();
        fake.process(10).parent(5).start(100).write();
        fake.process(20).parent(5).write();
        let mut job = job();
        job.ignore(20);
        job.refresh(&fake.root(), At(0));
        assert!(job.member(20).is_none());
        assert_eq!(job.admit(&fake.root(), 20), None);
    }
}
