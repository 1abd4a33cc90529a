//! `ullage run --as SNAPSHOT`: wires the other machine's facts to the plan, makes the groups, and says one line a
//! fact.

use crate::snapshot_file;
use std::io;
use std::path::Path;
use ullage_kernel::KernelRoot;
use ullage_model::{Facts, RunFacts};
use ullage_report::comparison::value;
use ullage_report::format;
use ullage_supervisor::imitate::{is_bytes, library, plan, Imitation, Line, Step};
use ullage_supervisor::own_group::{Controller, OwnGroup};

/// The other machine, as far as it can be had; the groups live as long as this.
#[derive(Debug)]
pub struct Imitated {
    imitation: Imitation,
    lines: Vec<Line>,
    memory: Option<OwnGroup>,
    tasks: Option<OwnGroup>,
}

impl Imitated {
    /// Reads the snapshot and makes the groups. Where a budget holds a group of its own, none is made for memory.
    pub fn prepare(path: &Path, run: &RunFacts, root: &KernelRoot, budget: bool) -> anyhow::Result<Imitated> {
        let there = snapshot_file::read(path)?.facts;
        let mut here: Facts = run.machine.by_name();
        here.extend(
            run.environment.iter().map(|(name, value)| (format!("env.{name}"), value.as_str().into())),
        );
        let (imitation, lines) = plan(&there, &here, library);
        let mut imitated = Imitated { imitation, lines, memory: None, tasks: None };
        if budget && imitated.imitation.memory.take().is_some() {
            imitated.refuse("cgroup.memory.max", "--memory-max holds the job's memory");
        }
        imitated.memory =
            imitated.group(root, Controller::Memory, imitated.imitation.memory, "cgroup.memory.max");
        imitated.tasks = imitated.group(root, Controller::Pids, imitated.imitation.tasks, "cgroup.pids.max");
        let made = [&imitated.memory, &imitated.tasks];
        imitated.imitation.groups = made.into_iter().flatten().map(OwnGroup::processes).collect();
        Ok(imitated)
    }

    fn group(
        &mut self,
        root: &KernelRoot,
        controller: Controller,
        limit: Option<u64>,
        fact: &str,
    ) -> Option<OwnGroup> {
        OwnGroup::create(root, controller, limit?)
            .map_err(|error| self.refuse(fact, &format!("no cgroup could be made: {error}")))
            .ok()
    }

    fn refuse(&mut self, fact: &str, why: &str) {
        self.lines
            .iter_mut()
            .filter(|line| line.fact == fact)
            .for_each(|line| line.refused = Some(why.to_owned()));
    }

    /// What the spawn is given.
    pub fn take(&mut self) -> Imitation {
        std::mem::take(&mut self.imitation)
    }

    /// The group that holds the job's memory, as `/proc/PID/cgroup` names it.
    pub fn memory_group(&self) -> Option<String> {
        self.memory.as_ref().map(|group| group.name().to_owned())
    }

    /// One line a fact: applied, or why not.
    pub fn lines(&self, refused: &[(Step, io::Error)]) -> Vec<String> {
        self.lines
            .iter()
            .map(|line| {
                let unit = if is_bytes(&line.fact) { "bytes" } else { "" };
                let (there, here) = (value(&line.there, unit), value(&line.here, unit));
                let by_kernel = refused.iter().find(|(step, _)| Some(*step) == line.step);
                let kernel = by_kernel.map(|(_, error)| format!("the kernel refused: {error}"));
                let fact = format::clean(&line.fact);
                match line.refused.clone().or(kernel) {
                    None => format!("as: {fact} {there} (here {here})"),
                    Some(why) => {
                        format!("as: {fact} {there} not applied: {} (here {here})", format::clean(&why))
                    }
                }
            })
            .collect()
    }
}
