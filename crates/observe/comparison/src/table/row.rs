//! What does a row of the table say?

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
    pub effect: Effect,
    /// How often it is the reason, where nothing else is known: 0 to 0.4.
    pub base: f64,
    pub mechanism: &'static str,
    /// `{good}`, `{bad}` are the values, `{job}` is the command.
    pub test: &'static str,
    /// Facts that follow from this one.
    pub brings: &'static [&'static str],
}

/// Figures that many rows are about.
pub(super) const MEMORY: &[&str] = &["memory", "memory_late", "cgroup_memory", "host_memory"];
pub(super) const TASKS: &[&str] = &["tasks", "cgroup_tasks", "threads"];
