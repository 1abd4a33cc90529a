//! What grew where no name holds it? A group of tensors of one shape, or a line of the program that allocates, as the
//! agent's censuses and its traces say. Tensors say what they are; a line says where memory came from, and not what it became.

use super::retainers::{explained_share, is_much, is_not_live, Kind};
use crate::history::ProcessHistory;
use crate::policy::growth::EXPLAINS;
use crate::policy::sizes::MOST;
use crate::trend::Rise;
use ullage_model::{At, Site, Sites, TensorGroup};

/// Tensors of one shape that are most of what came to a process.
pub(crate) struct Unheld<'a> {
    pub(crate) at: At,
    pub(crate) group: &'a TensorGroup,
    /// Of this growth since the first census.
    pub(crate) of: u64,
}

/// None where names explain a good part of the growth, or tensors are not most of it.
pub(crate) fn unheld(process: &ProcessHistory, rise: Rise) -> Option<Unheld<'_>> {
    nameless(process, rise).then(|| tensors(process, rise)).flatten()
}

/// The line that allocated most of what came, in the time that was traced; none where names explain a good part of the growth.
pub(crate) fn line(process: &ProcessHistory, rise: Rise) -> Option<(At, &Site, &Sites)> {
    let (at, sites) = process.sites.as_ref()?;
    let site = sites.sites.iter().max_by_key(|site| site.bytes)?;
    let most = sites.came > 0 && site.bytes as f64 >= MOST * sites.came as f64;
    (nameless(process, rise) && at.seconds() >= rise.since && most).then_some((*at, site, sites))
}

fn nameless(process: &ProcessHistory, rise: Rise) -> bool {
    is_much(process, &rise) && !is_not_live(process, &rise) && explained_share(process, rise) < EXPLAINS
}

impl Unheld<'_> {
    /// Tensors without a graph are what each step brought.
    pub(crate) fn kind(&self) -> Kind {
        match self.group.tensors.ends_with("with graph") {
            true => Kind::Graph,
            false => Kind::Output,
        }
    }
}

/// Bytes by which a group became more since the first census.
pub(crate) fn more(group: &TensorGroup) -> u64 {
    group.bytes.saturating_sub(group.bytes_before.unwrap_or(group.bytes))
}

fn tensors(process: &ProcessHistory, rise: Rise) -> Option<Unheld<'_>> {
    let first = process.censuses.iter().find(|(_, census)| census.tensors.is_some())?;
    let (at, last) = process.censuses.iter().rfind(|(_, census)| census.tensors.is_some())?;
    let of = last.grown.saturating_sub(first.1.grown);
    let group = last.tensors.as_ref()?.groups.iter().max_by_key(|group| more(group))?;
    let most = of > 0 && more(group) as f64 >= MOST * of as f64;
    (at.seconds() >= rise.since && most).then_some(Unheld { at: *at, group, of })
}
