//! What grew where no name holds it? A group of tensors of one shape, or a line of the program that allocates, as the
//! agent's censuses and its traces say.

use super::retainers::{explained_share, is_much, is_not_live, Kind};
use crate::history::ProcessHistory;
use crate::policy::growth::EXPLAINS;
use crate::policy::sizes::MOST;
use crate::trend::Rise;
use ullage_model::{At, Site, Sites, TensorGroup};

/// It is most of what came to a process.
pub(crate) enum Unheld<'a> {
    /// And of this growth since the first census.
    Tensors(At, &'a TensorGroup, u64),
    Line(At, &'a Site, &'a Sites),
}

/// None where names explain a good part of the growth, or nothing else is most of it.
pub(crate) fn unheld(process: &ProcessHistory, rise: Rise) -> Option<Unheld<'_>> {
    if !is_much(process, &rise) || is_not_live(process, &rise) || explained_share(process, rise) >= EXPLAINS {
        return None;
    }
    tensors(process, rise).or_else(|| line(process, rise))
}

impl Unheld<'_> {
    /// Tensors without a graph, and what a line allocates, are what each step brought.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Unheld::Tensors(_, group, _) if group.tensors.ends_with("with graph") => Kind::Graph,
            Unheld::Tensors(..) | Unheld::Line(..) => Kind::Output,
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
    (at.seconds() >= rise.since && most).then_some(Unheld::Tensors(*at, group, of))
}

fn line(process: &ProcessHistory, rise: Rise) -> Option<Unheld<'_>> {
    let (at, sites) = process.sites.as_ref()?;
    let site = sites.sites.iter().max_by_key(|site| site.bytes)?;
    let most = sites.came > 0 && site.bytes as f64 >= MOST * sites.came as f64;
    (at.seconds() >= rise.since && most).then_some(Unheld::Line(*at, site, sites))
}
