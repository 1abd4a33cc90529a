//! Facts of a machine under names that a person knows (`sysctl.vm.max_map_count`, `limit.nofile.soft`), so that two
//! machines can be laid side by side whatever there is on either.

use crate::{Bytes, Limit, MachineFacts, Measured, Missing};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts by name. docs/reference/snapshot-json.md lists the names.
pub type Facts = BTreeMap<String, Fact>;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// A count or a number of bytes.
    Number(u64),
    /// Yes or no.
    Flag(bool),
    /// Not known.
    Missing {
        /// Why, in a few words.
        missing: String,
    },
    /// No limit; before [`Fact::Text`], which would take its word.
    Unlimited(Unlimited),
    /// A word, a version, a list.
    Text(String),
}

/// `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unlimited {
    /// The only word.
    Unlimited,
}

impl Fact {
    /// No limit.
    pub const UNLIMITED: Fact = Fact::Unlimited(Unlimited::Unlimited);

    /// Not known, because of this.
    pub fn missing(because: impl Into<String>) -> Fact {
        Fact::Missing { missing: because.into() }
    }

    /// The number, where it is one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Fact::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// The text, where it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Fact::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As a limit, where it is a number or unlimited.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Fact::Number(n) => Some(Limit::At(*n)),
            Fact::Unlimited(_) => Some(Limit::Unlimited),
            _ => None,
        }
    }

    /// It could not be known.
    pub fn is_missing(&self) -> bool {
        matches!(self, Fact::Missing { .. })
    }
}

impl From<u64> for Fact {
    fn from(n: u64) -> Fact {
        Fact::Number(n)
    }
}

impl From<u8> for Fact {
    fn from(n: u8) -> Fact {
        Fact::Number(n.into())
    }
}

impl From<Bytes> for Fact {
    fn from(bytes: Bytes) -> Fact {
        Fact::Number(bytes.0)
    }
}

impl From<bool> for Fact {
    fn from(flag: bool) -> Fact {
        Fact::Flag(flag)
    }
}

impl From<String> for Fact {
    fn from(text: String) -> Fact {
        Fact::Text(text)
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Fact {
        Fact::Text(text.to_owned())
    }
}

impl From<Limit> for Fact {
    fn from(limit: Limit) -> Fact {
        limit.at().map_or(Fact::UNLIMITED, Fact::Number)
    }
}

impl From<Missing> for Fact {
    fn from(reason: Missing) -> Fact {
        Fact::missing(reason.reason())
    }
}

impl<T: Into<Fact>> From<Measured<T>> for Fact {
    fn from(value: Measured<T>) -> Fact {
        match value {
            Measured::Known(value) => value.into(),
            Measured::Missing(reason) => reason.into(),
        }
    }
}

/// The facts of one machine that change how memory behaves: what `ullage snapshot` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Version of this shape; within one, facts are only added.
    pub schema: u32,
    /// Version of the ullage that wrote it.
    pub ullage: String,
    /// When, seconds since 1970.
    pub taken_unix: f64,
    /// Paths, host and user names were left out.
    pub redacted: bool,
    /// The facts.
    pub facts: Facts,
}

impl Snapshot {
    /// The schema that this version writes and reads.
    pub const SCHEMA: u32 = 1;
}

impl MachineFacts {
    /// Everything that is known of the machine, by name.
    pub fn by_name(&self) -> Facts {
        let mut facts = self.others.clone();
        let quota = self.cpu_quota.map(|limit| limit.at().map_or(Limit::Unlimited, |n| Limit::At(n / 10)));
        let own: [(&str, Fact); 14] = [
            ("kernel.release", self.kernel.as_str().into()),
            ("kernel.page_size", self.page_size.into()),
            ("cores.online", u64::from(self.cores).into()),
            ("cores.quota_percent", quota.into()),
            ("memory.total", self.memory_total.into()),
            ("sysctl.vm.max_map_count", self.max_map_count.into()),
            ("sysctl.vm.overcommit_memory", self.overcommit_memory.into()),
            ("sysctl.vm.overcommit_ratio", self.overcommit_ratio.into()),
            ("sysctl.kernel.pid_max", self.pid_max.into()),
            ("sysctl.kernel.threads-max", self.threads_max.into()),
            ("sysctl.fs.file-max", self.file_max.into()),
            ("sysctl.fs.nr_open", self.nr_open.into()),
            ("thp.enabled", self.transparent_hugepages.clone().into()),
            ("cgroup.v2_memory", self.cgroup_v2_memory.into()),
        ];
        facts.extend(own.map(|(name, fact)| (name.to_owned(), fact)));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_fact_is_plain_json() {
        let read = |text: &str| serde_json::from_str::<Fact>(text).unwrap();
        assert_eq!(read("65530"), Fact::Number(65530));
        assert_eq!(read("true"), Fact::Flag(true));
        assert_eq!(read("\"unlimited\""), Fact::UNLIMITED);
        assert_eq!(read("\"madvise\""), Fact::Text("madvise".into()));
        assert_eq!(read("{\"missing\":\"no permission\"}"), Fact::from(Missing::NoPermission));
        for fact in [Fact::Number(1), Fact::UNLIMITED, Fact::missing("x"), "y".into(), Fact::Flag(false)] {
            assert_eq!(read(&serde_json::to_string(&fact).unwrap()), fact);
        }
    }

    #[test]
    fn a_machine_is_reported_by_name_with_what_could_not_be_read() {
        let others = Facts::from([("shm.size".to_owned(), Fact::Number(64 << 20))]);
        let facts = MachineFacts { max_map_count: Measured::Known(65530), others, ..MachineFacts::default() };
        let facts = facts.by_name();
        assert_eq!(facts["sysctl.vm.max_map_count"], Fact::Number(65530));
        assert_eq!(facts["shm.size"], Fact::Number(64 << 20));
        assert!(facts["memory.total"].is_missing());
    }
}
