//! What of this machine changes how memory behaves, beside what a sample holds? Read once; each fact has a name
//! (docs/reference/snapshot-json.md), and one that could not be read says why.
//!
//! The surprise: limits, groups and mounts are those of the asking process, which the job inherits.

mod collector;
mod groups;
mod places;
mod settings;
mod userland;

use crate::KernelRoot;
use collector::Collector;
use ullage_model::Facts;

impl KernelRoot {
    /// Reads them all, in some milliseconds, as the process `pid` meets them.
    pub fn facts(&self, pid: i32) -> Facts {
        let mut collector = Collector::of(self);
        settings::collect(&mut collector);
        userland::collect(&mut collector);
        match self.process(pid) {
            Ok(process) => {
                settings::of_process(&mut collector, &process);
                groups::collect(&mut collector, &process);
                places::collect(&mut collector, &process);
            }
            Err(error) => collector.set("limits", error.missing()),
        }
        collector.facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ullage_model::Missing;

    #[test]
    fn the_live_machine_reports_its_facts_and_a_bare_one_says_why_not() {
        let facts = KernelRoot::live().facts(std::process::id() as i32);
        for name in
            ["limit.nofile.soft", "limit.as.hard", "sysctl.vm.swappiness", "shm.size", "cores.allowed"]
        {
            assert!(!facts[name].is_missing(), "{name}: {:?}", facts[name]);
        }
        let folder = tempfile::tempdir().unwrap();
        let facts = KernelRoot::at(folder.path()).facts(1);
        assert_eq!(facts["sysctl.vm.swappiness"], Missing::KernelTooOld.into());
        assert!(facts["limits"].is_missing());
    }
}
