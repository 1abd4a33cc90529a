//! Processes join and leave: their facts, their program, their role.

use super::{Ended, Sampler};
use crate::member::{Member, Quiet};
use crate::roles::{self, Seen};
use ullage_kernel::process::cgroup::lines_of_interest;
use ullage_kernel::process::maps::DataFile;
use ullage_kernel::ProcessDir;
use ullage_model::{At, Ending, EventKind, Measured, Missing, ProcessFacts, ProcessId, ProcessMemory, Role};

/// What one reading of `stat` and `status` tells of a newcomer, so that its first tick reads neither of them again.
pub(super) struct Described {
    pub(super) facts: ProcessFacts,
    /// startstack.
    image: u64,
    sizes: Option<(Quiet, ProcessMemory)>,
}

impl Sampler {
    pub(super) fn join(&mut self, id: ProcessId, now: At, ended: &mut Vec<Ended>) {
        if let Some(old) = self.members.get(&id.pid).map(|member| member.id).filter(|old| *old != id) {
            self.leave(old, now, ended);
        }
        let Ok(mut process) = self.root.process(id.pid) else { return };
        let keep = self.to_keep > 0;
        if keep {
            process = process.keep_open();
        }
        let Some(described) = self.describe_anew(&process, id) else { return };
        self.segments.joined(id);
        let mut member = Member::new(&described.facts, now);
        member.sizes = described.sizes.map(|(quiet, memory)| (now, quiet, memory));
        member.mount_namespace = process.namespace("mnt").ok().flatten();
        if let Some(hidden) = self.groups.watch(&described.facts.cgroups) {
            self.not_seen(now, hidden);
        }
        self.identify_program(&process, &mut member, &described);
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
        self.say(now, EventKind::ProcessSeen { facts: Box::new(facts) });
    }

    pub(super) fn leave(&mut self, id: ProcessId, now: At, ended: &mut Vec<Ended>) {
        if self.members.get(&id.pid).is_some_and(|member| member.id == id) {
            let member = self.members.remove(&id.pid);
            if let Some(member) = &member {
                self.let_go(member, now);
            }
            ended.push(Ended { id, ending: member.and_then(|member| member.ending).unwrap_or(GONE) });
            self.pending_roles.remove(&id.pid);
        }
    }

    /// Files that are as long as what is mapped of them: databases map more than there is, on purpose.
    pub(super) fn whole_files(&self, mut files: Vec<DataFile>) -> Vec<DataFile> {
        files
            .retain(|file| self.root.file_length(&file.path).is_ok() && self.length_of_short(file).is_none());
        files
    }

    /// A page behind the end of a mapped file is a SIGBUS for whoever touches it.
    fn length_of_short(&self, file: &DataFile) -> Option<u64> {
        let page = rustix::param::page_size() as u64;
        let length = self.root.file_length(&file.path).ok()?;
        (file.end > length.div_ceil(page).saturating_mul(page)).then_some(length)
    }

    /// What a member that is gone held is free for others.
    pub(super) fn let_go(&mut self, member: &Member, now: At) {
        for file in &member.data_files {
            if let Some(length) = self.length_of_short(file) {
                let (id, path, mapped) = (member.id, file.path.clone(), file.end);
                self.say(now, EventKind::MappedFileShort { id, path, mapped, length });
            }
        }
        self.to_keep += u64::from(member.files.is_some());
        self.roles_moved = true;
    }

    pub(super) fn describe_anew(&mut self, process: &ProcessDir, id: ProcessId) -> Option<Described> {
        let buffer = &mut self.buffer;
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

    pub(super) fn identify_program(
        &mut self,
        process: &ProcessDir,
        member: &mut Member,
        described: &Described,
    ) {
        member.program = roles::program(&described.facts.command_line, &member.comm);
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
        if parent.is_some_and(|parent| parent.program == roles::Program::Launcher) {
            let rank = process.environment_variable("RANK", &mut self.buffer).ok().flatten();
            member.rank = rank.and_then(|rank| rank.parse().ok());
        }
    }

    pub(super) fn role_from_outside(&self, pid: i32) -> Role {
        let Some(member) = self.members.get(&pid) else { return Role::Other };
        let parent = self.members.get(&member.born_to);
        let seen = Seen {
            main: member.id == self.main,
            comm: &member.comm,
            program: member.program,
            forked: member.forked,
            parent: parent.map(|parent| parent.program),
            parent_role: parent.map(|parent| &parent.role),
            rank: member.rank,
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
    pub(super) fn roles(&mut self, now: At) {
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
                _ => (self.role_from_outside(pid), false),
            };
            let Some(member) = self.members.get_mut(&pid) else { continue };
            member.role_exact |= exact;
            if member.role != role {
                member.role = role.clone();
                // Its children's may follow.
                self.roles_moved = true;
                let id = member.id;
                self.say(now, EventKind::RoleKnown { id, role });
            }
        }
    }
}

pub(super) const GONE: Measured<Ending> = Measured::Missing(Missing::Vanished);
