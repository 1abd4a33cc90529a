//! How does each thing of the model stand in its table?

pub(crate) mod cgroup;
pub(crate) mod event;
pub(crate) mod filesystem;
pub(crate) mod pages;
pub(crate) mod process;
pub(crate) mod segment;
pub(crate) mod tick;

/// A row that belongs to a tick: the `position`-th of its list in that sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed<T> {
    pub(crate) tick: u64,
    pub(crate) position: u64,
    pub(crate) what: T,
}
