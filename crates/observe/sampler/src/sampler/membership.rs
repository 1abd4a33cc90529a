//! Who is of the job? Processes join and leave: their facts, their program, their role, their cgroups.

use super::files::Files;
use super::news::News;
use crate::groups::Groups;
use crate::job::Job;
use crate::member::{Member, Quiet};
use crate::roles::{self, Generations, Numbered, Seen, RANKS};
use std::collections::HashMap;
use ullage_kernel::process::cgroup::lines_of_interest;
use ullage_kernel::process::command_line::parse_environment_variable;
use ullage_kernel::process::maps::DataFile;
use ullage_kernel::root::OPEN_DESCRIPTORS;
use ullage_kernel::{KernelRoot, ProcessDir};
use ullage_model::{
    AgentMessage, At, Ending, EventKind, Measured, Missing, ProcessFacts, ProcessId, ProcessMemory, Role,
};

/// How far up wrappers are followed.
const ANCESTORS: usize = 16;

/// A process that is no longer there. Whoever waits for processes knows better how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub id: ProcessId,
    /// From its zombie's stat, where one was seen.
    pub ending: Measured<Ending>,
}

impl Ended {
    fn of(member: &Member) -> Ended {
        Ended { id: member.id, ending: member.ending.unwrap_or(GONE) }
    }
}

const GONE: Measured<Ending> = Measured::Missing(Missing::Vanished);

/// Which processes joined since the last tick, and which ended.
#[derive(Debug, Default)]
pub(super) struct Moved {
    pub(super) joined: Vec<ProcessId>,
    pub(super) ended: Vec<Ended>,
    /// The listing had none that was not known.
    pub(super) none_listed: bool,
}

/// The processes of a job.
#[derive(Debug)]
pub(super) struct Membership {
    main: ProcessId,
    job: Job,
    members: HashMap<i32, Member>,
    pub(super) groups: Groups,
    pending_roles: HashMap<i32, Role>,
    /// Something moved that roles are told by.
    pub(super) roles_moved: bool,
    generations: Generations,
    /// Members whose files may still be kept open.
    to_keep: u64,
}

/// What one reading of `stat` and `status` tells of a newcomer, so that its first tick reads neither of them again.
pub(super) struct Described {
    pub(super) facts: ProcessFacts,
    /// startstack.
    image: u64,
    sizes: Option<(Quiet, ProcessMemory)>,
}

impl Membership {
    pub(super) fn new(main: ProcessId, reaper: Option<i32>, groups: Groups) -> Membership {
        Membership {
            main,
            job: Job::new(main, reaper),
            members: HashMap::new(),
            groups,
            pending_roles: HashMap::new(),
            roles_moved: true,
            generations: Generations::default(),
            to_keep: most_members_open(),
        }
    }

    /// A child of the reaper that is not of the job.
    pub(super) fn ignore(&mut self, pid: i32) {
        self.job.ignore(pid);
    }

    /// The identity of a pid of the job, read now; the process becomes a member by this.
    pub(super) fn admit(&mut self, root: &KernelRoot, pid: i32) -> Option<ProcessId> {
        self.job.admit(root, pid)
    }

    /// All processes of a cgroup that holds nothing but the job.
    pub(super) fn admit_group(&mut self, files: &mut Files, group: &str) {
        for pid in self.groups.processes(&files.root, group, &mut files.buffer) {
            self.job.admit(&files.root, pid);
        }
    }

    /// The agent in a process said something: its role may be known exactly now.
    pub(super) fn agent_said(&mut self, root: &KernelRoot, pid: i32, message: &AgentMessage) {
        if let Some(role) = roles::role_by_agent(message) {
            self.job.admit(root, pid);
            self.pending_roles.insert(pid, role);
            self.roles_moved = true;
        }
    }

    /// By pid.
    pub(super) fn members(&self) -> &HashMap<i32, Member> {
        &self.members
    }

    /// A member is taken out while it is read, and [put back](Membership::put_back) or [lost](Membership::lose).
    pub(super) fn take(&mut self, pid: i32) -> Option<Member> {
        self.members.remove(&pid)
    }

    pub(super) fn put_back(&mut self, member: Member) {
        self.members.insert(member.id.pid, member);
    }

    /// It ended between the listing and the reading; the next listing would not tell.
    pub(super) fn lose(&mut self, root: &KernelRoot, news: &mut News, member: &Member, now: At) -> Ended {
        self.job.forget(member.id);
        self.let_go(root, news, member, now);
        Ended::of(member)
    }

    /// Lists the job's processes.
    pub(super) fn refresh(&mut self, files: &mut Files, news: &mut News, now: At) -> Moved {
        let changes = self.job.refresh(&files.root, now);
        let mut moved = Moved { none_listed: changes.joined.is_empty(), ..Moved::default() };
        for id in changes.left {
            self.leave(&files.root, news, id, now, &mut moved);
        }
        for id in changes.joined {
            self.join(files, news, id, now, &mut moved);
        }
        // Admitted ones (agent, cgroup) are members of the job that no listing reported.
        let unseen = |id: &ProcessId| self.members.get(&id.pid).is_none_or(|member| member.id != *id);
        for id in self.job.members().filter(unseen).collect::<Vec<_>>() {
            self.join(files, news, id, now, &mut moved);
        }
        moved
    }

    fn join(&mut self, files: &mut Files, news: &mut News, id: ProcessId, now: At, moved: &mut Moved) {
        if let Some(old) = self.members.get(&id.pid).map(|member| member.id).filter(|old| *old != id) {
            self.leave(&files.root, news, old, now, moved);
        }
        let Ok(mut process) = files.root.process(id.pid) else { return };
        let keep = self.to_keep > 0;
        if keep {
            process = process.keep_open();
        }
        let Some(described) = describe(&process, id, &mut files.buffer) else { return };
        moved.joined.push(id);
        let mut member = Member::new(&described.facts, now);
        member.sizes = described.sizes.map(|(quiet, memory)| (now, quiet, memory));
        member.mount_namespace = process.namespace("mnt").ok().flatten();
        if let Some(hidden) = self.groups.watch(&described.facts.cgroups) {
            news.not_seen(now, hidden);
        }
        self.identify_program(&process, &mut member, &described, &mut files.buffer);
        let forked_from = member.forked_from;
        if keep {
            self.to_keep -= 1;
            member.files = Some(process);
        }
        self.roles_moved = true;
        self.generations.add(member.born_to, member.forked, member.program, id.start.0);
        self.members.insert(id.pid, member);
        let role = self.role_from_outside(id.pid);
        if let Some(member) = self.members.get_mut(&id.pid) {
            member.role = role.clone();
        }
        let facts = ProcessFacts { role, forked_from, ..described.facts };
        news.say(now, EventKind::ProcessSeen { facts: Box::new(facts) });
    }

    fn leave(&mut self, root: &KernelRoot, news: &mut News, id: ProcessId, now: At, moved: &mut Moved) {
        if self.members.get(&id.pid).is_some_and(|member| member.id == id) {
            if let Some(member) = self.members.remove(&id.pid) {
                self.let_go(root, news, &member, now);
                moved.ended.push(Ended::of(&member));
            }
            self.pending_roles.remove(&id.pid);
        }
    }

    /// What a member that is gone held is free for others.
    fn let_go(&mut self, root: &KernelRoot, news: &mut News, member: &Member, now: At) {
        for file in &member.data_files {
            if let Some(length) = length_of_short(root, file) {
                let (id, path, mapped) = (member.id, file.path.clone(), file.end);
                news.say(now, EventKind::MappedFileShort { id, path, mapped, length });
            }
        }
        self.to_keep += u64::from(member.files.is_some());
        self.roles_moved = true;
    }

    pub(super) fn identify_program(
        &self,
        process: &ProcessDir,
        member: &mut Member,
        described: &Described,
        buffer: &mut Vec<u8>,
    ) {
        let before = member.program;
        member.program = roles::program(&described.facts.command_line, &member.comm);
        let tied_to_program = matches!(member.role, Role::Main | Role::Rank(_)) && member.id != self.main;
        if tied_to_program && before != member.program {
            member.role = Role::Other;
        }
        member.image = described.image;
        let parent = self.members.get(&member.born_to);
        // Without the right to know the image, the same kind of program counts as forked.
        member.forked = parent.is_some_and(|parent| match (parent.image, member.image) {
            (0, _) | (_, 0) => parent.program == member.program && parent.comm == member.comm,
            (parent, child) => parent == child,
        });
        member.forked_from = parent.filter(|_| member.forked).map(|parent| parent.id);
        // The image outlives a parent that nobody saw.
        member.family = match (member.image, parent.filter(|_| member.forked)) {
            (0, Some(parent)) => parent.family,
            (0, None) => (member.id.start.0 << 22) | member.id.pid as u64,
            (image, _) => image,
        };
        // A forked one shows what its parent was started with.
        member.rank = if member.forked { None } else { numbered(process, buffer) };
    }

    /// The number of a rank: its launcher gave it to this process, or to a shell that started it. Whatever a rank starts
    /// carries the same number on.
    fn rank(&self, member: &Member) -> Option<u32> {
        let mine = member.rank?;
        let above =
            self.ancestors(member).find(|above| above.rank != Some(mine) || !above.program.wraps())?;
        (above.rank != Some(mine)).then_some(mine.1)
    }

    /// Its ancestors in the job, nearest first.
    fn ancestors<'a>(&'a self, member: &Member) -> impl Iterator<Item = &'a Member> + 'a {
        let above = |pid| self.members.get(&pid);
        std::iter::successors(above(member.born_to), move |one| above(one.born_to)).take(ANCESTORS)
    }

    fn role_from_outside(&self, pid: i32) -> Role {
        let Some(member) = self.members.get(&pid) else { return Role::Other };
        let parent = self.members.get(&member.born_to);
        let seen = Seen {
            main: member.id == self.main,
            comm: &member.comm,
            program: member.program,
            forked: member.forked,
            parent: parent.map(|parent| parent.program),
            parent_role: parent.map(|parent| &parent.role),
            rank: self.rank(member),
            wrapped: member.id != self.main
                && self.ancestors(member).all(|above| above.program.wraps())
                && self.ancestors(member).any(|above| above.id == self.main),
            elder: false,
            twin: false,
        };
        if !roles::multiprocessing_child(&seen) {
            return roles::role(&seen);
        }
        let (elder, twin) =
            self.generations.elder_and_twin(member.born_to, member.forked, member.program, member.id.start.0);
        roles::role(&Seen { elder, twin, ..seen })
    }

    /// Decides all roles again where something moved that they are told by; what the agent said stands.
    pub(super) fn roles(&mut self, news: &mut News, now: At) {
        if !std::mem::take(&mut self.roles_moved) {
            return;
        }
        self.generations.clear();
        for member in self.members.values() {
            self.generations.add(member.born_to, member.forked, member.program, member.id.start.0);
        }
        for pid in self.members.keys().copied().collect::<Vec<_>>() {
            let said = self.pending_roles.remove(&pid);
            let Some(member) = self.members.get(&pid) else { continue };
            // A number, once known, is not lost to a message that does not know it.
            let vague =
                said == Some(Role::LoaderWorker(None)) && matches!(member.role, Role::LoaderWorker(Some(_)));
            let (role, exact) = match said {
                _ if member.id == self.main => continue,
                Some(role) if !vague => (role, true),
                _ if member.role_exact || member.ending.is_some() => continue,
                // Its launcher, by which that was seen, may be gone by now.
                _ if matches!(member.role, Role::Main | Role::Rank(_)) => continue,
                _ => (self.role_from_outside(pid), false),
            };
            let Some(member) = self.members.get_mut(&pid) else { continue };
            member.role_exact |= exact;
            if member.role != role {
                member.role = role.clone();
                // Its children's may follow.
                self.roles_moved = true;
                let id = member.id;
                news.say(now, EventKind::RoleKnown { id, role });
            }
        }
    }

    /// One living process of each mount namespace, main's first; none where none lives.
    pub(super) fn representatives(&self) -> Vec<(Option<u64>, i32)> {
        let mut found: Vec<(Option<u64>, i32)> = Vec::new();
        let main = self.members.get(&self.main.pid).filter(|main| main.ending.is_none());
        let mut others: Vec<&Member> =
            self.members.values().filter(|member| member.ending.is_none()).collect();
        others.sort_unstable_by_key(|member| member.id);
        for member in main.into_iter().chain(others) {
            if !found.iter().any(|(namespace, _)| *namespace == member.mount_namespace) {
                found.push((member.mount_namespace, member.id.pid));
            }
        }
        found
    }
}

/// The first of the variables by which launchers number processes.
fn numbered(process: &ProcessDir, buffer: &mut Vec<u8>) -> Option<Numbered> {
    process.environment(buffer).ok()?;
    RANKS.iter().enumerate().find_map(|(variable, name)| {
        let rank = parse_environment_variable(buffer, name)?;
        Some((variable, std::str::from_utf8(rank).ok()?.parse().ok()?))
    })
}

/// None where it is another process by now.
pub(super) fn describe(process: &ProcessDir, id: ProcessId, buffer: &mut Vec<u8>) -> Option<Described> {
    let stat = process.stat(buffer).ok().filter(|stat| stat.id == id)?;
    let (parent, comm) = (stat.parent, String::from_utf8_lossy(stat.comm).into_owned());
    let (image, quiet) = (stat.program, Quiet::of(&stat));
    let (uid, seccomp, cores_allowed, sizes) = match process.status(buffer) {
        Ok(status) => {
            let sizes = status.memory.map(|memory| (quiet, memory));
            (status.uid.into(), status.seccomp.into(), status.cores_allowed.into(), sizes)
        }
        Err(error) => {
            let why = error.missing();
            (Measured::Missing(why), Measured::Missing(why), Measured::Missing(why), None)
        }
    };
    let limits = match process.limits(buffer) {
        Ok(limits) => Measured::Known(limits),
        Err(error) => Measured::Missing(error.missing()),
    };
    let command_line = process.command_line(buffer).unwrap_or_default();
    let cgroups = process.cgroup(buffer).map(|()| lines_of_interest(buffer)).unwrap_or_default();
    let (role, forked_from) = (Role::Other, None);
    let facts = ProcessFacts {
        id,
        parent,
        uid,
        command_line,
        comm,
        limits,
        cgroups,
        role,
        seccomp,
        cores_allowed,
        forked_from,
    };
    Some(Described { facts, image, sizes })
}

/// Files that are as long as what is mapped of them: databases map more than there is, on purpose.
pub(super) fn whole_files(root: &KernelRoot, mut files: Vec<DataFile>) -> Vec<DataFile> {
    files.retain(|file| root.file_length(&file.path).is_ok() && length_of_short(root, file).is_none());
    files
}

/// A page behind the end of a mapped file is a SIGBUS for whoever touches it.
fn length_of_short(root: &KernelRoot, file: &DataFile) -> Option<u64> {
    let page = rustix::param::page_size() as u64;
    let length = root.file_length(&file.path).ok()?;
    (file.end > length.div_ceil(page).saturating_mul(page)).then_some(length)
}

/// Half of the descriptors that this process may open: the others are for pidfds and agents, one each a process.
fn most_members_open() -> u64 {
    let open_files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    open_files.unwrap_or(u64::MAX) / 2 / OPEN_DESCRIPTORS
}
