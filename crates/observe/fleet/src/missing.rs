//! Which ranks and nodes should be there and are not, and which recordings stop long before the others?

use crate::first::{is_lost, latest, node, place};
use std::collections::BTreeSet;
use ullage_model::{FleetMissing, FleetRow, LostRecording};

/// Numbers that are listed; a job with more has a wrong size, or was hardly recorded at all.
const MOST_LISTED: usize = 10_000;

/// By what the environment of the recordings says of the job's size.
pub(crate) fn missing(rows: &[&FleetRow]) -> FleetMissing {
    let ranks: BTreeSet<u32> = rows.iter().filter_map(|row| row.rank).collect();
    let expected_ranks = rows.iter().filter_map(|row| row.world_size).max();
    let names: BTreeSet<&str> = rows.iter().filter_map(|row| node(row)).collect();
    let numbers: BTreeSet<u32> = rows.iter().filter_map(|row| row.node_rank).collect();
    let expected_nodes = rows.iter().filter_map(|row| row.world_nodes).max();
    // Numbers begin at 0; a gap below the largest is missing whatever the job's size is.
    let gaps = |present: &BTreeSet<u32>, expected: Option<u32>| -> Vec<u32> {
        let end = present.last().map_or(0, |last| last.saturating_add(1)).max(expected.unwrap_or(0));
        let all = if present.is_empty() { 0..0 } else { 0..end };
        all.filter(|number| !present.contains(number)).take(MOST_LISTED).collect()
    };
    let node_ranks = gaps(&numbers, expected_nodes);
    let unseen = expected_nodes.map_or(0, |expected| expected.saturating_sub(names.len() as u32));
    let latest = latest(rows);
    let lost = rows.iter().filter(|row| is_lost(row, latest));
    FleetMissing {
        expected_ranks,
        expected_nodes,
        ranks: gaps(&ranks, expected_ranks),
        nodes: unseen.max(node_ranks.len() as u32),
        node_ranks,
        lost: lost
            .filter_map(|row| Some(LostRecording { place: place(row), last_unix: row.ended_unix? }))
            .collect(),
    }
}
