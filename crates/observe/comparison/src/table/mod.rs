//! Which fact changes what, how, and which command settles it? Data only: rows by subject, one file each. A fact
//! that no row names changes nothing that is known, and is counted, not ranked.
//!
//! The first row that names a fact counts, so that an exact name stands before a pattern that takes it too.

mod kernel;
mod limits;
mod python;
mod settings;

/// What a difference in a fact does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// A bound on a figure that grows until it is met: the smaller, the tighter. From `ample` on no job that is known
    /// meets it.
    Bound { figure: &'static str, ample: u64 },
    /// This value does the harm, by these figures; another does not.
    Harm { value: &'static str, figures: &'static [&'static str] },
    /// It moves these figures, either way.
    Moves(&'static [&'static str]),
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Name of the fact; with `*` at its end, the beginning of names.
    pub fact: &'static str,
    pub title: &'static str,
    /// `bytes`, `%`, or nothing.
    pub unit: &'static str,
    /// Causes of the catalogue that it can bring about.
    pub causes: &'static [&'static str],
    pub effect: Effect,
    /// How often it is the reason, where nothing else is known: 0 to 0.4.
    pub base: f64,
    pub mechanism: &'static str,
    /// `{good}`, `{bad}` are the values, `{job}` is the command.
    pub test: &'static str,
    /// Facts that follow from this one.
    pub brings: &'static [&'static str],
}

/// The row of a fact.
pub(crate) fn row(fact: &str) -> Option<&'static Row> {
    all().find(|row| matches(row.fact, fact))
}

pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    limits::ROWS.iter().chain(kernel::ROWS).chain(settings::ROWS).chain(python::ROWS)
}

/// Whether a name, or the beginning of one with `*`, means this fact.
pub(crate) fn matches(pattern: &str, fact: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => fact.starts_with(beginning),
        None => pattern == fact,
    }
}

/// The figure that a cause is about.
pub(crate) fn stake(cause: &str) -> &'static [&'static str] {
    STAKES.iter().find(|(id, _)| *id == cause).map_or(&[], |(_, figures)| figures)
}

const MEMORY: &[&str] = &["memory", "memory_late", "cgroup_memory", "host_memory"];
const TASKS: &[&str] = &["tasks", "cgroup_tasks", "threads"];

const STAKES: &[(&str, &[&str])] = &[
    ("max-map-count-exhausted", &["mappings"]),
    ("nofile-exhausted-shared-tensors", &["descriptors"]),
    ("fd-leak-files-sockets", &["descriptors"]),
    ("forkserver-too-many-fds", &["descriptors"]),
    ("pids-limit-cgroup", TASKS),
    ("nproc-rlimit", TASKS),
    ("rlimit-as-virtual-memory", &["address_space"]),
    ("strict-overcommit", &["committed", "address_space"]),
    ("fork-enomem-large-parent", &["committed", "memory"]),
    ("shm-full-bytes", &["shm_bytes"]),
    ("tmpfs-inodes", &["shm_inodes"]),
    ("disk-full-tmp", &["tmp_bytes"]),
    ("memcg-oom-kill", MEMORY),
    ("invisible-child-oom", MEMORY),
    ("host-oom-kill", MEMORY),
    ("refcount-cow-fork-workers", MEMORY),
    ("spawn-forkserver-full-copy", MEMORY),
    ("worker-import-overhead", MEMORY),
    ("thp-always-rss-bloat", MEMORY),
    ("glibc-arenas-per-core", MEMORY),
    ("onednn-primitive-cache-shapes", MEMORY),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole_and_an_exact_name_is_not_hidden_by_a_pattern() {
        for (at, one) in all().enumerate() {
            assert!(one.mechanism.ends_with('.') && !one.title.is_empty(), "{}", one.fact);
            assert!(!one.test.is_empty() && (0.0..=0.4).contains(&one.base), "{}", one.fact);
            let hidden = all().take(at).any(|earlier| matches(earlier.fact, one.fact));
            assert!(!hidden, "{} comes too late", one.fact);
        }
    }

    #[test]
    fn patterns_take_beginnings() {
        assert!(matches("env.MALLOC_*", "env.MALLOC_ARENA_MAX") && matches("a", "a") && !matches("a", "ab"));
        assert_eq!(row("limit.nofile.soft").unwrap().title, "soft limit of open files");
        assert!(row("kernel.hostname").is_none());
    }
}
