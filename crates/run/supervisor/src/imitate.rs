//! What of another machine can be given to a job here? Pure: from the facts there and here to what is set, and what
//! cannot be, with the reason. `spawn/steps.rs` sets it, in the job's process only.
//!
//! The surprise: a limit can be lowered by anybody and raised by hardly anybody, so the job meets the tighter of both
//! machines in everything.

use nix::sys::resource::{Resource, RLIM_INFINITY};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use ullage_model::{Fact, Facts, Limit};

/// What the job is given; see [`plan`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imitation {
    /// Resource, soft, hard.
    pub limits: Vec<(Resource, u64, u64)>,
    /// Variables set.
    pub environment: Vec<(OsString, OsString)>,
    /// Variables taken away.
    pub removed: Vec<OsString>,
    /// It runs on that many of the cores that it may use here.
    pub cores: Option<u64>,
    /// Options of a /dev/shm of its own.
    pub shm: Option<String>,
    /// No transparent huge pages.
    pub no_huge_pages: bool,
    /// Limit of an own cgroup, bytes.
    pub memory: Option<u64>,
    /// Limit of an own cgroup, tasks.
    pub tasks: Option<u64>,
    /// `cgroup.procs` of the groups that were made for it.
    pub groups: Vec<PathBuf>,
}

/// What is done in the job's own process, in this order; a refusal is told by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Entering a cgroup.
    Group,
    /// A /dev/shm of its own.
    Shm,
    /// Huge pages off.
    HugePages,
    /// Fewer cores.
    Cores,
    /// A limit.
    Limits,
}

/// One fact of the other machine, and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name of the fact.
    pub fact: String,
    /// There.
    pub there: Fact,
    /// Here.
    pub here: Fact,
    /// The step in the job's process that does it; none where it was done before, or is not.
    pub step: Option<Step>,
    /// Why it is not applied; none where it is.
    pub refused: Option<String>,
}

const LIMITS: [(&str, Resource, bool); 10] = [
    ("nofile", Resource::RLIMIT_NOFILE, false),
    ("nproc", Resource::RLIMIT_NPROC, false),
    ("as", Resource::RLIMIT_AS, true),
    ("data", Resource::RLIMIT_DATA, true),
    ("stack", Resource::RLIMIT_STACK, true),
    ("memlock", Resource::RLIMIT_MEMLOCK, true),
    ("fsize", Resource::RLIMIT_FSIZE, true),
    ("msgqueue", Resource::RLIMIT_MSGQUEUE, true),
    ("sigpending", Resource::RLIMIT_SIGPENDING, false),
    ("core", Resource::RLIMIT_CORE, true),
];

/// What holds for a whole machine, or is part of it.
const OF_THE_MACHINE: [(&str, &str); 12] = [
    ("sysctl.vm.max_map_count", "it applies to the whole machine (sysctl)"),
    ("sysctl.vm.overcommit_memory", "it applies to the whole machine (sysctl)"),
    ("sysctl.vm.overcommit_ratio", "it applies to the whole machine (sysctl)"),
    ("sysctl.vm.swappiness", "it applies to the whole machine (sysctl)"),
    ("thp.enabled", "it applies to the whole machine, and can only be switched off for a job"),
    ("swap.total", "swap belongs to the whole machine"),
    ("cores.quota_percent", "a quota of CPU time is not imitated"),
    ("kernel.release", "the kernel is this machine's"),
    ("cgroup.layout", "cgroups are mounted for the whole machine"),
    ("libc.version", "the C library is this machine's"),
    ("python.version", "the job brings its own Python"),
    ("torch.version", "the job brings its own torch"),
];

/// Variables that name places or ranks of the other machine.
const NOT_TAKEN: &[&str] = &[
    "env.LD_LIBRARY_PATH",
    "env.TMPDIR",
    "env.RANK",
    "env.LOCAL_RANK",
    "env.WORLD_SIZE",
    "env.LOCAL_WORLD_SIZE",
    "env.CUDA_VISIBLE_DEVICES",
    "env.ULLAGE_FIX",
];

/// From the facts of the other machine and of this one. `found` tells where a preloaded library lies here.
pub fn plan(there: &Facts, here: &Facts, found: impl Fn(&str) -> Option<PathBuf>) -> (Imitation, Vec<Line>) {
    let mut plan = Planner { there, here, imitation: Imitation::default(), lines: Vec::new() };
    LIMITS.iter().for_each(|(name, resource, _)| plan.limit(name, *resource));
    plan.variables(&found);
    plan.cores();
    plan.shm();
    plan.huge_pages();
    plan.group("cgroup.memory.max", &["memory.total"], |imitation| &mut imitation.memory);
    plan.group("cgroup.pids.max", &[], |imitation| &mut imitation.tasks);
    for (fact, why) in OF_THE_MACHINE {
        let said = plan.lines.iter().any(|line| line.fact == fact);
        if let (false, Some((there, here))) = (said, plan.differs(fact)) {
            plan.line(fact, there, here, None, Some(why.to_owned()));
        }
    }
    (plan.imitation, plan.lines)
}

/// True where the unit of a fact is bytes.
pub fn is_bytes(fact: &str) -> bool {
    let limit = fact.strip_prefix("limit.").and_then(|rest| rest.split('.').next());
    LIMITS.iter().any(|(name, _, bytes)| *bytes && Some(*name) == limit)
        || ["cgroup.memory.max", "memory.total", "shm.size", "swap.total"].contains(&fact)
}

struct Planner<'a> {
    there: &'a Facts,
    here: &'a Facts,
    imitation: Imitation,
    lines: Vec<Line>,
}

impl Planner<'_> {
    /// Both values, where both are known and not the same.
    fn differs(&self, fact: &str) -> Option<(Fact, Fact)> {
        let (there, here) = (self.there.get(fact)?, self.here.get(fact)?);
        (there != here && !there.is_missing() && !here.is_missing()).then(|| (there.clone(), here.clone()))
    }

    fn line(&mut self, fact: &str, there: Fact, here: Fact, step: Option<Step>, refused: Option<String>) {
        self.lines.push(Line { fact: fact.to_owned(), there, here, step, refused });
    }

    fn limit(&mut self, name: &str, resource: Resource) {
        let (soft, hard) = (format!("limit.{name}.soft"), format!("limit.{name}.hard"));
        let limit = |facts: &Facts, name: &str| facts.get(name).and_then(Fact::limit);
        let (Some(soft_there), Some(soft_here), Some(hard_here)) =
            (limit(self.there, &soft), limit(self.here, &soft), limit(self.here, &hard))
        else {
            return;
        };
        let hard_there = limit(self.there, &hard).unwrap_or(hard_here);
        if (soft_there, hard_there) == (soft_here, hard_here) {
            return;
        }
        let hard_set = hard_there.tighter(hard_here);
        let soft_set = soft_there.tighter(hard_set);
        let number = |limit: Limit| limit.at().unwrap_or(RLIM_INFINITY);
        if (soft_set, hard_set) != (soft_here, hard_here) {
            self.imitation.limits.push((resource, number(soft_set), number(hard_set)));
        }
        let exempt = name == "nproc" && self.here.get("user.root") == Some(&Fact::Flag(true));
        let refused = if soft_set != soft_there {
            let most = hard_set.at().map_or("unlimited".into(), |n| n.to_string());
            Some(format!("it can be raised only to the hard limit here ({most})"))
        } else {
            exempt.then(|| "it does not apply to root".to_owned())
        };
        if soft_there != soft_here || refused.is_some() {
            self.line(&soft, soft_there.into(), soft_here.into(), Some(Step::Limits), refused);
        }
        if hard_there != hard_here {
            let refused = (hard_set != hard_there).then(|| "a hard limit can only be lowered".to_owned());
            self.line(&hard, hard_there.into(), hard_here.into(), Some(Step::Limits), refused);
        }
    }

    fn variables(&mut self, found: &impl Fn(&str) -> Option<PathBuf>) {
        let names = self.there.keys().chain(self.here.keys()).filter(|name| name.starts_with("env."));
        let names: std::collections::BTreeSet<String> = names.cloned().collect();
        for fact in names {
            let (there, here) = (self.there.get(&fact), self.here.get(&fact));
            if there == here {
                continue;
            }
            let name = OsString::from(fact.trim_start_matches("env."));
            let absent = || Fact::from("not set");
            let (of_there, of_here) =
                (there.cloned().unwrap_or_else(absent), here.cloned().unwrap_or_else(absent));
            let refused = match there.map(typed) {
                _ if NOT_TAKEN.contains(&fact.as_str()) => {
                    Some("it names places or ranks of the other machine".into())
                }
                None => {
                    self.imitation.removed.push(name);
                    None
                }
                Some(value) if fact == "env.LD_PRELOAD" => match preload(&value, found) {
                    Ok(value) => {
                        self.imitation.environment.push((name, value));
                        None
                    }
                    Err(missing) => Some(format!("{missing} is not on this machine")),
                },
                Some(value) if value.contains('…') => {
                    Some("the snapshot was redacted (ullage snapshot --full)".into())
                }
                Some(value) => {
                    self.imitation.environment.push((name, value.into()));
                    None
                }
            };
            self.line(&fact, of_there, of_here, None, refused);
        }
    }

    fn cores(&mut self) {
        let Some((there, here)) = self.differs("cores.allowed") else { return };
        let (Some(cores), Some(allowed)) = (there.number(), here.number()) else { return };
        let refused = (cores > allowed || cores == 0).then(|| "there are no more cores here".to_owned());
        if refused.is_none() {
            self.imitation.cores = Some(cores);
        }
        self.line("cores.allowed", there, here, Some(Step::Cores), refused);
    }

    fn shm(&mut self) {
        let (size, inodes) = (self.differs("shm.size"), self.differs("shm.inodes"));
        if size.is_none() && inodes.is_none() {
            return;
        }
        let tmpfs = self.there.get("shm.tmpfs") == Some(&Fact::Flag(true));
        let refused = (!tmpfs).then(|| "/dev/shm is no tmpfs there".to_owned());
        if refused.is_none() {
            // 0 is unlimited for both (tmpfs(5)).
            let option =
                |name: &str| self.there.get(name).and_then(Fact::limit).map(|limit| limit.at().unwrap_or(0));
            let options: Vec<String> = [("size", "shm.size"), ("nr_inodes", "shm.inodes")]
                .into_iter()
                .filter_map(|(option_name, fact)| Some(format!("{option_name}={}", option(fact)?)))
                .collect();
            self.imitation.shm = Some(format!("mode=1777,{}", options.join(",")));
        }
        for (fact, values) in [("shm.size", size), ("shm.inodes", inodes)] {
            if let Some((there, here)) = values {
                self.line(fact, there, here, Some(Step::Shm), refused.clone());
            }
        }
    }

    fn huge_pages(&mut self) {
        let off = |facts: &Facts| {
            facts.get("thp.enabled") == Some(&"never".into())
                || facts.get("thp.process") == Some(&Fact::Flag(false))
        };
        if !off(self.there) || off(self.here) {
            return;
        }
        self.imitation.no_huge_pages = true;
        let (there, here) = self.differs("thp.enabled").unwrap_or(("off for the job".into(), "on".into()));
        self.line("thp.enabled", there, here, Some(Step::HugePages), None);
    }

    /// A bound that an own group can hold: of the fact itself, or of the whole machine there, whichever is tighter.
    fn group(&mut self, fact: &str, also: &[&str], place: fn(&mut Imitation) -> &mut Option<u64>) {
        let limit = |facts: &Facts, name: &str| facts.get(name).and_then(Fact::limit);
        let tightest = |facts: &Facts| {
            let first = limit(facts, fact);
            also.iter().filter_map(|name| limit(facts, name)).chain(first).reduce(Limit::tighter)
        };
        let (Some(there), Some(here)) = (tightest(self.there), tightest(self.here)) else { return };
        if there == here {
            return;
        }
        let refused = match (there, here) {
            (Limit::At(limit), _) if there.tighter(here) == there => {
                *place(&mut self.imitation) = Some(limit);
                None
            }
            _ => Some("this machine allows less".to_owned()),
        };
        self.line(fact, there.into(), here.into(), Some(Step::Group), refused);
    }
}

fn typed(fact: &Fact) -> String {
    match fact {
        Fact::Text(text) => text.clone(),
        Fact::Number(n) => n.to_string(),
        Fact::Flag(flag) => flag.to_string(),
        Fact::Unlimited(_) => "unlimited".into(),
        Fact::Missing { .. } => String::new(),
    }
}

/// The same libraries where they lie here; the name of the first that is not there.
fn preload(value: &str, found: &impl Fn(&str) -> Option<PathBuf>) -> Result<OsString, String> {
    let mut paths = OsString::new();
    for word in value.split([':', ' ']).filter(|word| !word.is_empty()) {
        let name = word.rsplit('/').next().unwrap_or(word);
        let path = found(word).or_else(|| found(name)).ok_or_else(|| name.to_owned())?;
        if !paths.is_empty() {
            paths.push(":");
        }
        paths.push(path);
    }
    Ok(paths)
}

/// A library by its path, or by its name in the folders where the loader looks.
pub fn library(word: &str) -> Option<PathBuf> {
    const FOLDERS: &[&str] = &[
        "/usr/local/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/lib64",
        "/usr/lib",
        "/lib",
    ];
    if word.starts_with('/') {
        return Some(PathBuf::from(word)).filter(|path| path.is_file());
    }
    FOLDERS.iter().map(|folder| Path::new(folder).join(word)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(of: &[(&str, Fact)]) -> Facts {
        of.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect()
    }

    fn nothing(_: &str) -> Option<PathBuf> {
        None
    }

    fn line<'a>(lines: &'a [Line], fact: &str) -> &'a Line {
        lines.iter().find(|line| line.fact == fact).unwrap()
    }

    #[test]
    fn limits_are_lowered_and_what_cannot_be_raised_says_so() {
        let here =
            facts(&[("limit.nofile.soft", Fact::Number(20000)), ("limit.nofile.hard", Fact::Number(20000))]);
        let lower =
            facts(&[("limit.nofile.soft", Fact::Number(1024)), ("limit.nofile.hard", Fact::Number(4096))]);
        let (imitation, lines) = plan(&lower, &here, nothing);
        assert_eq!(imitation.limits, [(Resource::RLIMIT_NOFILE, 1024, 4096)]);
        assert!(lines.iter().all(|line| line.refused.is_none()) && lines.len() == 2);
        let higher =
            facts(&[("limit.nofile.soft", Fact::Number(65536)), ("limit.nofile.hard", Fact::UNLIMITED)]);
        let (imitation, lines) = plan(&higher, &here, nothing);
        assert_eq!(imitation.limits, []);
        assert!(line(&lines, "limit.nofile.soft").refused.as_deref().unwrap().contains("20000"));
    }

    #[test]
    fn the_same_machine_needs_nothing() {
        let same = facts(&[
            ("limit.as.soft", Fact::UNLIMITED),
            ("limit.as.hard", Fact::UNLIMITED),
            ("cores.allowed", Fact::Number(2)),
            ("env.OMP_NUM_THREADS", "1".into()),
        ]);
        assert_eq!(plan(&same, &same, nothing), (Imitation::default(), vec![]));
    }

    #[test]
    fn variables_are_set_taken_away_and_libraries_searched_for() {
        let there = facts(&[
            ("env.MALLOC_ARENA_MAX", "2".into()),
            ("env.LD_PRELOAD", "…/libjemalloc.so.2".into()),
            ("env.MKL_X", "…".into()),
        ]);
        let here = facts(&[("env.OMP_NUM_THREADS", "4".into())]);
        let lies =
            |word: &str| (word == "libjemalloc.so.2").then(|| PathBuf::from("/usr/lib/libjemalloc.so.2"));
        let (imitation, lines) = plan(&there, &here, lies);
        assert_eq!(imitation.removed, ["OMP_NUM_THREADS"]);
        assert_eq!(imitation.environment[0], ("LD_PRELOAD".into(), "/usr/lib/libjemalloc.so.2".into()));
        assert_eq!(imitation.environment[1], ("MALLOC_ARENA_MAX".into(), "2".into()));
        assert!(line(&lines, "env.MKL_X").refused.is_some());
        let (_, lines) = plan(&there, &here, nothing);
        assert!(line(&lines, "env.LD_PRELOAD").refused.as_deref().unwrap().contains("libjemalloc.so.2"));
    }

    #[test]
    fn a_smaller_machine_is_a_group_and_a_tmpfs() {
        let there = facts(&[
            ("memory.total", Fact::Number(8 << 30)),
            ("cgroup.memory.max", Fact::UNLIMITED),
            ("cgroup.pids.max", Fact::Number(100)),
            ("shm.size", Fact::Number(64 << 20)),
            ("shm.inodes", Fact::UNLIMITED),
            ("shm.tmpfs", true.into()),
            ("sysctl.vm.max_map_count", Fact::Number(1)),
        ]);
        let here = facts(&[
            ("memory.total", Fact::Number(16 << 30)),
            ("cgroup.memory.max", Fact::UNLIMITED),
            ("cgroup.pids.max", Fact::UNLIMITED),
            ("shm.size", Fact::Number(8 << 30)),
            ("shm.inodes", Fact::Number(5)),
            ("sysctl.vm.max_map_count", Fact::Number(2)),
        ]);
        let (imitation, lines) = plan(&there, &here, nothing);
        assert_eq!((imitation.memory, imitation.tasks), (Some(8 << 30), Some(100)));
        assert_eq!(imitation.shm.as_deref(), Some("mode=1777,size=67108864,nr_inodes=0"));
        assert!(line(&lines, "sysctl.vm.max_map_count").refused.is_some());
        let (imitation, _) = plan(&here, &there, nothing);
        assert_eq!((imitation.memory, imitation.tasks), (None, None), "more than there is cannot be given");
    }
}
