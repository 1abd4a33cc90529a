//! Which recordings stand out from their peers? By median and median absolute deviation (MAD), which outliers do not move.
//!
//! Peers are recordings of one kind: of a rank, or of a node. The first of a kind is no peer: rank 0 logs and saves for all.
//! The surprise: only more than the others counts. A run that failed stopped early, and less of anything says nothing.

use crate::first::place;
use crate::policy::{
    DEVIATION_OF_MAD, LEAST_DISTANCE, LEAST_DISTANCE_ELSE, LEAST_PEERS, LEAST_SHARE, OUTLIER_DEVIATIONS,
};
use std::collections::{BTreeMap, BTreeSet};
use ullage_model::{FleetOutlier, FleetPlace, FleetRow};

/// Outliers that are listed.
const MOST_OUTLIERS: usize = 32;

/// Those that stand out, the farthest first.
pub(crate) fn outliers(rows: &[&FleetRow]) -> Vec<FleetOutlier> {
    let mut peers: BTreeMap<&str, Vec<&FleetRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.problem.is_none()) {
        if let Some(kind) = kind(row) {
            peers.entry(kind).or_default().push(row);
        }
    }
    let mut found: Vec<(f64, FleetOutlier)> = Vec::new();
    for peers in peers.values().filter(|peers| peers.len() >= LEAST_PEERS) {
        let compared = |figure: &&&String| {
            LEAST_DISTANCE.iter().any(|(name, _)| *name == figure.as_str()) || figure.starts_with("each ")
        };
        let figures: BTreeSet<&String> = peers.iter().flat_map(|row| row.figures.keys()).collect();
        for figure in figures.iter().filter(compared) {
            found.extend(of_figure(figure, peers));
        }
    }
    found.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then_with(|| a.1.place.path.cmp(&b.1.place.path))
            .then(a.1.figure.cmp(&b.1.figure))
    });
    found.truncate(MOST_OUTLIERS);
    found.into_iter().map(|(_, outlier)| outlier).collect()
}

/// What a recording is compared with; none for the first of a kind.
fn kind(row: &FleetRow) -> Option<&'static str> {
    match (row.rank, row.node_rank) {
        (Some(0), _) | (None, Some(0)) => None,
        (Some(_), _) => Some("rank"),
        (None, _) => Some("node"),
    }
}

/// Each outlier of one figure, and how far it lies from the median in thresholds.
fn of_figure(figure: &str, peers: &[&FleetRow]) -> Vec<(f64, FleetOutlier)> {
    let values: Vec<(&FleetRow, f64)> =
        peers.iter().filter_map(|row| Some((*row, *row.figures.get(figure)?))).collect();
    if values.len() < LEAST_PEERS {
        return Vec::new();
    }
    let middle = median(values.iter().map(|(_, value)| *value).collect());
    let deviation =
        DEVIATION_OF_MAD * median(values.iter().map(|(_, value)| (value - middle).abs()).collect());
    let known = LEAST_DISTANCE.iter().find(|(name, _)| *name == figure);
    let least = known.map_or(LEAST_DISTANCE_ELSE, |(_, least)| *least);
    let threshold = (OUTLIER_DEVIATIONS * deviation).max(LEAST_SHARE * middle.abs()).max(least);
    values
        .iter()
        .filter(|(_, value)| value - middle > threshold)
        .map(|(row, value)| {
            let place = FleetPlace { rank: row.rank.or(row.cause_rank), ..place(row) };
            let figure = figure.to_owned();
            let outlier = FleetOutlier { place, figure, value: *value, median: middle, peers: values.len() };
            ((value - middle) / threshold, outlier)
        })
        .collect()
}

/// Of nothing it is 0.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => 0.0,
        values if values.len() % 2 == 1 => values[values.len() / 2],
        values => (values[values.len() / 2 - 1] + values[values.len() / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[f64]) -> Vec<FleetRow> {
        (1u32..)
            .zip(values)
            .map(|(rank, value)| FleetRow {
                path: format!("rank={rank}"),
                rank: Some(rank),
                figures: BTreeMap::from([("mappings".to_owned(), *value)]),
                ..FleetRow::default()
            })
            .collect()
    }

    fn found(values: &[f64]) -> Vec<u32> {
        let rows = rows(values);
        let rows: Vec<&FleetRow> = rows.iter().collect();
        outliers(&rows).iter().filter_map(|one| one.place.rank).collect()
    }

    #[test]
    fn one_that_has_far_more_is_named() {
        let mut values = [3000.0; 16];
        assert!(found(&values).is_empty());
        values[4] = 60_000.0;
        assert_eq!(found(&values), [5]);
        values[4] = 4_400.0;
        assert!(found(&values).is_empty(), "less than half more");
        values[4] = 0.0;
        assert!(found(&values).is_empty(), "less is no outlier");
        assert!(found(&[1.0, 1.0, 1.0, 1e9]).is_empty(), "too few peers");
    }

    #[test]
    fn the_median_is_between_the_two_in_the_middle() {
        assert_eq!((median(vec![]), median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0])), (0.0, 2.0, 2.5));
    }
}
