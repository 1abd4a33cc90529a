//! `/dev/kmsg`: what the kernel logs about OOM kills and refused forks (Documentation/ABI/testing/dev-kmsg).
//!
//! ```text
//! 6,1234,567890,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a,task=python,pid=123,uid=0
//! 3,1235,567891,-;Memory cgroup out of memory: Killed process 123 (python) total-vm:9kB, anon-rss:8kB, file-rss:7kB, shmem-rss:6kB, UID:0 …
//! 4,1236,567892,-;cgroup: fork rejected by pids controller in /x
//! ```
//! A host OOM has `global_oom` in place of `oom_memcg=…`. The first line tells whose limit, the second the
//! sizes; with memory.oom.group the second comes alone for each further victim. The surprise: pids and paths
//! are those of the machine, not of a container.

use crate::error::KernelError;
use crate::scan::{find, find_last, number};
use crate::KernelRoot;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use ullage_model::{KernelOomKill, OomConstraint};

/// A record that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelRecord {
    /// `oom-kill:…`: whose limit was met and who was chosen; sizes are zero.
    OomDecision(KernelOomKill),
    /// `… Killed process …`: the sizes; cgroups are none.
    OomVictim(KernelOomKill),
    /// The pids controller refused a fork in this cgroup.
    ForkRejected(String),
}

/// Parses one record of `/dev/kmsg`, or one line of dmesg(1).
pub fn parse_kernel_record(record: &[u8]) -> Option<KernelRecord> {
    let line = record.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if let Some(at) = find(line, b"oom-kill:constraint=") {
        return decision(&line[at..]).map(KernelRecord::OomDecision);
    }
    if let Some(at) = find(line, b"Killed process ") {
        return victim(line, &line[at + b"Killed process ".len()..]).map(KernelRecord::OomVictim);
    }
    let marker = b"fork rejected by pids controller in ";
    find(line, marker).map(|at| KernelRecord::ForkRejected(text(&line[at + marker.len()..])))
}

fn decision(line: &[u8]) -> Option<KernelOomKill> {
    // Paths and comm may hold commas: cut at the keys, the last ones from behind.
    let pid_at = find_last(line, b",pid=")?;
    let task_at = find_last(&line[..pid_at], b",task=")?;
    let head = &line[..task_at];
    let task_group_at = find(head, b",task_memcg=");
    let oom_group_at = find(head, b",oom_memcg=");
    let before_groups = oom_group_at.or(task_group_at).unwrap_or(head.len());
    let constraint = match &head[..before_groups] {
        head if find(head, b"=CONSTRAINT_MEMCG,").is_some() => OomConstraint::Cgroup,
        head if find(head, b"=CONSTRAINT_CPUSET,").is_some() => OomConstraint::Numa,
        head if find(head, b"=CONSTRAINT_MEMORY_POLICY,").is_some() => OomConstraint::Numa,
        head if find(head, b",global_oom").is_some() => OomConstraint::Host,
        _ => OomConstraint::Unknown,
    };
    let pid = line[pid_at + 5..].split(|&byte| byte == b',').next().unwrap_or_default();
    Some(KernelOomKill {
        constraint,
        pid: i32::try_from(number(pid)?).ok()?,
        task: text(&line[task_at + 6..pid_at]),
        oom_cgroup: oom_group_at
            .map(|at| text(&head[at + 11..task_group_at.unwrap_or(head.len()).max(at + 11)])),
        task_cgroup: task_group_at.map(|at| text(&head[at + 12..])),
        ..KernelOomKill::default()
    })
}

fn victim(line: &[u8], rest: &[u8]) -> Option<KernelOomKill> {
    let blank = rest.iter().position(|&byte| byte == b' ')?;
    let pid = i32::try_from(number(&rest[..blank])?).ok()?;
    let sizes_at = find(rest, b") total-vm:").unwrap_or(rest.len());
    let kib = |key: &[u8]| -> u64 {
        find(rest, key)
            .and_then(|at| {
                rest[at + key.len()..].split(|byte| !byte.is_ascii_digit()).next().and_then(number)
            })
            .map_or(0, |kib| kib.saturating_mul(1024))
    };
    let constraint = match line {
        line if find(line, b"Memory cgroup out of memory").is_some() => OomConstraint::Cgroup,
        // "Out of memory:" of the machine and "(oom_kill_allocating_task)"; a cpuset says the same words, and
        // is told by the decision.
        _ => OomConstraint::Unknown,
    };
    Some(KernelOomKill {
        constraint,
        pid,
        task: text(rest.get(blank + 2..sizes_at).unwrap_or_default()),
        anonymous: kib(b"anon-rss:"),
        file: kib(b"file-rss:"),
        shared: kib(b"shmem-rss:"),
        ..KernelOomKill::default()
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// Joins decisions with victims.
#[derive(Debug, Default)]
pub struct OomJoiner {
    decided: Option<KernelOomKill>,
    /// The last decision, for further victims of memory.oom.group, and for its own where that comes late.
    last: Option<KernelOomKill>,
}

impl OomJoiner {
    /// Takes a record; returns the kill that is complete with it, or that [`Self::take_unfinished`] gave without sizes.
    pub fn push(&mut self, record: KernelRecord) -> Option<KernelOomKill> {
        match record {
            KernelRecord::OomDecision(decision) => {
                self.last = Some(decision.clone());
                self.decided.replace(decision)
            }
            KernelRecord::OomVictim(victim) => {
                let late = || self.last.clone().filter(|decision| decision.pid == victim.pid);
                if let Some(decision) =
                    self.decided.take_if(|decision| decision.pid == victim.pid).or_else(late)
                {
                    let KernelOomKill { anonymous, file, shared, .. } = victim;
                    return Some(KernelOomKill { anonymous, file, shared, ..decision });
                }
                let (constraint, oom_cgroup) = match &self.last {
                    Some(KernelOomKill { constraint: OomConstraint::Cgroup, oom_cgroup, .. })
                        if victim.constraint == OomConstraint::Cgroup =>
                    {
                        (OomConstraint::Cgroup, oom_cgroup.clone())
                    }
                    _ => (victim.constraint, None),
                };
                Some(KernelOomKill { constraint, oom_cgroup, ..victim })
            }
            KernelRecord::ForkRejected(_) => None,
        }
    }

    /// A decision whose victim line did not come.
    pub fn take_unfinished(&mut self) -> Option<KernelOomKill> {
        self.decided.take()
    }
}

/// What a reading of the log brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelNews {
    /// A kill.
    OomKill(KernelOomKill),
    /// A refused fork; the kernel logs only the first of each cgroup.
    ForkRejected(String),
}

/// The kernel log from the moment of opening on.
#[derive(Debug)]
pub struct KernelLog {
    file: OwnedFd,
    joiner: OomJoiner,
}

impl KernelLog {
    /// Opens `/dev/kmsg` at its end. EPERM: dmesg_restrict without CAP_SYSLOG; ENOENT: a container without it.
    pub fn open(root: &KernelRoot) -> Result<KernelLog, KernelError> {
        let path = root.below("/dev/kmsg");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            rustix::fs::open(&path, flags, Mode::empty()).map_err(|errno| KernelError::read(&path, errno))?;
        rustix::fs::seek(&file, SeekFrom::End(0)).map_err(|errno| KernelError::read(&path, errno))?;
        Ok(KernelLog { file, joiner: OomJoiner::default() })
    }

    /// What the log still holds of the time from `usec` on (microseconds of the kernel's own clock, near enough to
    /// those since boot). Records before it are read and passed over.
    pub fn history(root: &KernelRoot, usec: u64) -> Result<Vec<KernelNews>, KernelError> {
        let path = root.below("/dev/kmsg");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            rustix::fs::open(&path, flags, Mode::empty()).map_err(|errno| KernelError::read(&path, errno))?;
        let mut log = KernelLog { file, joiner: OomJoiner::default() };
        let mut news = Vec::new();
        log.poll_from(usec, &mut news);
        news.extend(log.joiner.take_unfinished().map(KernelNews::OomKill));
        Ok(news)
    }

    /// What was logged since the last call. Never waits.
    pub fn poll(&mut self, news: &mut Vec<KernelNews>) {
        self.poll_from(0, news);
    }

    fn poll_from(&mut self, usec: u64, news: &mut Vec<KernelNews>) {
        // A record is at most 8 KiB: the kernel refuses smaller buffers with EINVAL.
        let mut record = [0u8; 8192];
        let waiting = self.joiner.decided.is_some();
        loop {
            match rustix::io::read(&self.file, &mut record[..]) {
                Ok(0) => break,
                Ok(count) if logged_at(&record[..count]).is_some_and(|at| at < usec) => {}
                Ok(count) => match parse_kernel_record(&record[..count]) {
                    Some(KernelRecord::ForkRejected(group)) => news.push(KernelNews::ForkRejected(group)),
                    Some(record) => news.extend(self.joiner.push(record).map(KernelNews::OomKill)),
                    None => {}
                },
                // EPIPE: records were overwritten before they were read; the next read goes on.
                Err(Errno::INTR | Errno::PIPE) => {}
                Err(_) => break,
            }
        }
        if waiting {
            news.extend(self.joiner.take_unfinished().map(KernelNews::OomKill));
        }
    }
}

/// Third field of a record: microseconds.
fn logged_at(record: &[u8]) -> Option<u64> {
    record.split(|&byte| byte == b';').next()?.split(|&byte| byte == b',').nth(2).and_then(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MEMCG: &[u8] = b"6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,b,task_memcg=/a,b/c,task=py,pid=9,pid=123,uid=0\n SUBSYSTEM=x\n";
    const GLOBAL: &[u8] = b"oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice,task=stress,pid=77,uid=1000";
    const VICTIM: &[u8] = b"3,1,2,-;Memory cgroup out of memory: Killed process 123 (py,pid=9) total-vm:90kB, anon-rss:8kB, file-rss:7kB, shmem-rss:6kB, UID:0 pgtables:4kB oom_score_adj:0\n";

    #[test]
    fn a_cgroup_kill_is_joined_from_its_two_lines() {
        let mut joiner = OomJoiner::default();
        assert_eq!(joiner.push(parse_kernel_record(MEMCG).unwrap()), None);
        let kill = joiner.push(parse_kernel_record(VICTIM).unwrap()).unwrap();
        assert_eq!(kill.constraint, OomConstraint::Cgroup);
        assert_eq!((kill.pid, kill.task.as_str()), (123, "py,pid=9"));
        assert_eq!(kill.oom_cgroup.as_deref(), Some("/a,b"));
        assert_eq!(kill.task_cgroup.as_deref(), Some("/a,b/c"));
        assert_eq!((kill.anonymous, kill.file, kill.shared), (8192, 7168, 6144));
        assert_eq!(joiner.take_unfinished(), None);
    }

    #[test]
    fn a_host_kill_has_no_oom_cgroup() {
        let Some(KernelRecord::OomDecision(kill)) = parse_kernel_record(GLOBAL) else { panic!() };
        assert_eq!((kill.constraint, kill.pid, kill.oom_cgroup), (OomConstraint::Host, 77, None));
        assert_eq!(kill.task_cgroup.as_deref(), Some("/user.slice"));
    }

    #[test]
    fn further_victims_of_a_group_kill_name_the_same_cgroup() {
        let mut joiner = OomJoiner::default();
        joiner.push(parse_kernel_record(MEMCG).unwrap());
        joiner.push(parse_kernel_record(VICTIM).unwrap());
        let other = b"Memory cgroup out of memory: Killed process 124 (sh) total-vm:1kB, anon-rss:2kB, file-rss:0kB, shmem-rss:0kB";
        let kill = joiner.push(parse_kernel_record(other).unwrap()).unwrap();
        assert_eq!((kill.pid, kill.oom_cgroup.as_deref()), (124, Some("/a,b")));
        assert_eq!(kill.constraint, OomConstraint::Cgroup);
    }

    #[test]
    fn a_victim_that_comes_late_is_of_the_decision_that_was_reported() {
        let mut joiner = OomJoiner::default();
        joiner.push(parse_kernel_record(GLOBAL).unwrap());
        assert_eq!(joiner.take_unfinished().map(|kill| kill.anonymous), Some(0));
        let line = b"Out of memory: Killed process 77 (stress) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB";
        let kill = joiner.push(parse_kernel_record(line).unwrap()).unwrap();
        assert_eq!((kill.constraint, kill.anonymous), (OomConstraint::Host, 8192));
    }

    #[test]
    fn a_victim_alone_does_not_establish_a_host_oom() {
        let line =
            b"Out of memory: Killed process 5 (x) total-vm:1kB, anon-rss:2kB, file-rss:0kB, shmem-rss:0kB";
        let kill = OomJoiner::default().push(parse_kernel_record(line).unwrap()).unwrap();
        assert_eq!(kill.constraint, OomConstraint::Unknown);
    }

    #[test]
    fn a_refused_fork_names_its_cgroup() {
        let record = parse_kernel_record(b"4,1,2,-;cgroup: fork rejected by pids controller in /x y\n");
        assert_eq!(record, Some(KernelRecord::ForkRejected("/x y".into())));
        assert_eq!(parse_kernel_record(b"6,1,2,-;usb 1-1: new device\n"), None);
    }

    #[test]
    fn the_log_file_of_a_fixture_is_read_from_its_end() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("dev")).unwrap();
        let path = folder.path().join("dev/kmsg");
        std::fs::write(&path, GLOBAL).unwrap();
        let mut log = KernelLog::open(&KernelRoot::at(folder.path())).unwrap();
        let mut news = Vec::new();
        log.poll(&mut news);
        assert!(news.is_empty(), "what was logged before is not of this run");
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, MEMCG).unwrap();
        log.poll(&mut news);
        assert!(news.is_empty(), "the victim line may still come");
        log.poll(&mut news);
        assert!(matches!(&news[..], [KernelNews::OomKill(kill)] if kill.pid == 123));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            parse_kernel_record(&bytes);
        }

        #[test]
        fn no_damage_to_a_real_one_panics(at in 0..MEMCG.len(), end in 0..MEMCG.len(), byte: u8) {
            let mut bytes = MEMCG.to_vec();
            bytes[at] = byte;
            parse_kernel_record(&bytes[..end]);
            parse_kernel_record(&bytes[at..]);
        }
    }
}
