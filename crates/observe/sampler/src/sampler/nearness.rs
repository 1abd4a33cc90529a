//! Which limit is met first, in seconds: it sets the pace of the ticks.

use crate::forecast::Trend;
use crate::member::Member;
use std::collections::{BTreeMap, HashMap};
use ullage_model::{At, CgroupReading, FilesystemReading, HostReading, Limit, Measured, ProcessReading};

/// What grows towards a limit, beside what a member has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scarce {
    FileBytes,
    Inodes,
    GroupMemory,
    GroupTasks,
    HostMemory,
    UserTasks,
    /// Held by others.
    Budget,
}

/// How fast each of them grows: by a device, a cgroup's path, a user.
#[derive(Debug)]
pub(super) struct Nearness {
    pub(super) max_map_count: Limit,
    trends: HashMap<(Scarce, String), Trend>,
    /// Seconds until a budget is met that others hold.
    budget_left: Option<f64>,
}

impl Nearness {
    pub(super) fn new(max_map_count: Limit) -> Nearness {
        Nearness { max_map_count, trends: HashMap::new(), budget_left: None }
    }

    pub(super) fn budget_left(&self) -> Option<f64> {
        self.budget_left
    }

    pub(super) fn used_of_budget(&mut self, now: At, used: u64, limit: u64) {
        self.budget_left = self.trend(now, Scarce::Budget, "", used, Limit::At(limit));
    }

    pub(super) fn process_left(&self, member: &Member) -> Option<f64> {
        let address_space = member.limits.as_known().map_or(Limit::Unlimited, |limits| limits.address_space);
        let lefts = [
            member.mappings.time_left(self.max_map_count),
            member.descriptors.time_left(member.open_files()),
            member.address_space.time_left(address_space),
        ];
        lefts.into_iter().fold(None, sooner)
    }

    pub(super) fn room_left(&mut self, now: At, filesystems: &[FilesystemReading]) -> Option<f64> {
        let mut left = None;
        for filesystem in filesystems {
            let (bytes, inodes) = (filesystem.used.0, filesystem.inodes_used);
            let key = filesystem.device.to_string();
            left = sooner(left, self.trend(now, Scarce::FileBytes, &key, bytes, filesystem.size));
            left = sooner(left, self.trend(now, Scarce::Inodes, &key, inodes, filesystem.inodes));
        }
        left
    }

    pub(super) fn groups_left(&mut self, now: At, groups: &[CgroupReading]) -> Option<f64> {
        let mut left = None;
        for group in groups {
            if let Measured::Known(memory) = &group.memory {
                let used = memory.in_use().0;
                left = sooner(left, self.trend(now, Scarce::GroupMemory, &group.path, used, memory.limit));
            }
            if let Measured::Known(pids) = &group.pids {
                let used = pids.current;
                left = sooner(left, self.trend(now, Scarce::GroupTasks, &group.path, used, pids.limit));
            }
        }
        left
    }

    /// RLIMIT_NPROC is held against all tasks of a user, of whom those in the job are seen; root is exempt.
    pub(super) fn tasks_left(
        &mut self,
        now: At,
        processes: &[ProcessReading],
        members: &HashMap<i32, Member>,
    ) -> Option<f64> {
        let mut users: BTreeMap<u32, (u64, Limit)> = BTreeMap::new();
        for process in processes {
            let Some(member) = members.get(&process.id.pid) else { continue };
            let Some(user) = member.user.filter(|user| *user != 0) else { continue };
            let limit = member.limits.as_known().map_or(Limit::Unlimited, |limits| limits.processes);
            let (tasks, tightest) = users.entry(user).or_insert((0, limit));
            *tasks += u64::from(process.threads);
            *tightest = tightest.tighter(limit);
        }
        users.into_iter().fold(None, |left, (user, (tasks, limit))| {
            sooner(left, self.trend(now, Scarce::UserTasks, &user.to_string(), tasks, limit))
        })
    }

    pub(super) fn host_left(&mut self, now: At, host: &HostReading) -> Option<f64> {
        let memory = host.memory.known()?;
        let total = memory.total.saturating_add(memory.swap_total);
        let free = memory.available.saturating_add(memory.swap_free);
        self.trend(now, Scarce::HostMemory, "", total.saturating_sub(free).0, Limit::At(total.0))
    }

    fn trend(&mut self, now: At, of: Scarce, key: &str, used: u64, limit: Limit) -> Option<f64> {
        limit.at()?;
        let trend = self.trends.entry((of, key.to_owned())).or_default();
        trend.push(now, used);
        trend.time_left(limit)
    }
}

pub(super) fn near(used: u64, limit: Limit) -> bool {
    limit.at().is_some_and(|limit| used.saturating_mul(10) >= limit.saturating_mul(5))
}

pub(super) fn sooner(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
