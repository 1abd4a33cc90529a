//! What of this machine changes how memory behaves, beside what a sample holds? Read once; each fact has a name
//! (docs/reference/snapshot-json.md), and one that could not be read says why.
//!
//! The surprise: limits, groups and mounts are those of the asking process, which the job inherits.

mod groups;
mod places;
mod settings;
mod userland;

use crate::KernelRoot;
use ullage_model::{Fact, Facts, Measured};

/// Facts as they come in.
pub(crate) struct Collector<'a> {
    pub(crate) root: &'a KernelRoot,
    pub(crate) buffer: Vec<u8>,
    facts: Facts,
}

impl Collector<'_> {
    pub(crate) fn set(&mut self, name: impl Into<String>, fact: impl Into<Fact>) {
        self.facts.insert(name.into(), fact.into());
    }

    /// A file's whole text without blanks at its ends.
    pub(crate) fn text(&mut self, path: &str) -> Measured<String> {
        match self.root.read(path, &mut self.buffer) {
            Ok(()) => Measured::Known(String::from_utf8_lossy(&self.buffer).trim().to_owned()),
            Err(error) => Measured::Missing(error.missing_feature()),
        }
    }

    /// The same under a name; a number where it is one.
    pub(crate) fn file(&mut self, name: impl Into<String>, path: &str) {
        let text = self.text(path);
        self.set(name, text.map(number_or_text));
    }
}

fn number_or_text(text: String) -> Fact {
    match text.parse::<u64>() {
        Ok(number) => number.into(),
        // A line of several numbers (kernel.sem) is told with single blanks.
        Err(_) => text.split_whitespace().collect::<Vec<_>>().join(" ").into(),
    }
}

impl KernelRoot {
    /// Reads them all, in some milliseconds, as the process `pid` meets them.
    pub fn facts(&self, pid: i32) -> Facts {
        let mut collector = Collector { root: self, buffer: Vec::new(), facts: Facts::new() };
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
    fn the_live_machine_tells_its_facts_and_a_bare_one_says_why_not() {
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

    #[test]
    fn a_line_of_numbers_is_one_text() {
        assert_eq!(
            number_or_text("32000\t1024000000\t500\t32000".into()),
            "32000 1024000000 500 32000".into()
        );
        assert_eq!(number_or_text("60".into()), Fact::Number(60));
    }
}
