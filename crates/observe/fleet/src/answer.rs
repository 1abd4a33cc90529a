//! What do all rows together answer? One job, its last attempt; who was first, what followed, who stands out, what is missing.

use crate::first::{cascade, first, is_lost, latest, node, place, suspects};
use crate::machines::Machines;
use crate::missing::missing;
use crate::odd::odd;
use crate::outliers::outliers;
use std::collections::{BTreeMap, BTreeSet};
use ullage_model::{
    Facts, FailureKind, FirstOfFleet, FleetAnswer, FleetLimit, FleetOutlier, FleetRow, FleetStates,
    OddBecause, OddNode,
};

/// Nodes of outliers that are compared with the others.
const MOST_ODD: usize = 2;

/// Rows, and the facts of each node.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    rows: Vec<FleetRow>,
    machines: Machines,
}

impl Fleet {
    /// Takes a recording, in any order.
    pub fn push(&mut self, row: FleetRow, facts: &Facts) {
        if let Some(node) = node(&row) {
            self.machines.add(node, &row.path, facts);
        }
        self.rows.push(row);
    }

    /// The answer for a job, by its id; without one, for the job that started last.
    pub fn answer(mut self, job: Option<&str>) -> FleetAnswer {
        self.rows.sort_by(|a, b| a.path.cmp(&b.path));
        let started = |a: &&FleetRow, b: &&FleetRow| a.started_unix.total_cmp(&b.started_unix);
        let newest = || self.rows.iter().max_by(started).and_then(|row| row.job.clone());
        let job = job.map_or_else(newest, |job| Some(job.to_owned()).filter(|job| job != "-"));
        let others: BTreeSet<String> = (self.rows.iter())
            .filter(|row| row.job != job)
            .map(|row| row.job.clone().unwrap_or_else(|| "-".to_owned()))
            .collect();
        let machines = self.machines;
        let rows: Vec<FleetRow> = self.rows.into_iter().filter(|row| row.job == job).collect();
        answer(rows, &machines, job, others.into_iter().collect())
    }
}

fn answer(
    all: Vec<FleetRow>,
    machines: &Machines,
    job: Option<String>,
    other_jobs: Vec<String>,
) -> FleetAnswer {
    let attempt = all.iter().map(|row| row.attempt).max().unwrap_or(0);
    let rows: Vec<&FleetRow> = all.iter().filter(|row| row.attempt == attempt).collect();
    let suspects = suspects(&rows);
    let first = first(&suspects);
    let outliers = outliers(&rows);
    let nodes: BTreeSet<&str> = rows.iter().filter_map(|row| node(row)).collect();
    let ranks: BTreeSet<u32> = rows.iter().filter_map(|row| row.rank).collect();
    let of_launchers = rows.iter().filter(|row| row.rank.is_none()).filter_map(|row| row.local_size);
    let of_launchers: usize = of_launchers.map(|ranks| ranks as usize).sum();
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.problem.is_none()) {
        *outcomes.entry(row.outcome.word().to_owned()).or_default() += 1;
        if let Some(cause) = &row.cause {
            *causes.entry(cause.clone()).or_default() += 1;
        }
    }
    FleetAnswer {
        schema: FleetAnswer::SCHEMA,
        job,
        attempt,
        recordings: rows.len(),
        nodes: nodes.len(),
        ranks: ranks.len() + of_launchers,
        states: states(&rows),
        outcomes,
        causes,
        cascade: cascade(&suspects, first.as_ref()),
        differs: differs(first.as_ref(), &outliers, &rows, machines),
        nearest: nearest(&rows),
        missing: missing(&rows),
        first,
        outliers,
        other_jobs,
        earlier: all.len() - rows.len(),
        rows: all,
    }
}

fn states(rows: &[&FleetRow]) -> FleetStates {
    let latest = latest(rows);
    let mut states = FleetStates::default();
    for row in rows {
        let state = match row {
            row if row.problem.is_some() => &mut states.unreadable,
            row if row.failure.is_some() => &mut states.failed,
            row if is_lost(row, latest) => &mut states.lost,
            row if !row.closed => &mut states.running,
            row if row.healthy => &mut states.healthy,
            _ => &mut states.warned,
        };
        *state += 1;
    }
    states
}

/// The node that failed first, where that is known, and those of the farthest outliers.
fn differs(
    first: Option<&FirstOfFleet>,
    outliers: &[FleetOutlier],
    rows: &[&FleetRow],
    machines: &Machines,
) -> Vec<OddNode> {
    let by_path = |path: &str| rows.iter().find(|row| row.path == path).copied();
    let mut found: Vec<OddNode> = Vec::new();
    let first = first.filter(|first| first.node.is_some()).and_then(|first| first.candidates.first());
    if let Some(row) = first.and_then(|candidate| by_path(&candidate.place.path)) {
        found.extend(odd(row, OddBecause::FirstFailure, rows, machines));
    }
    for row in outliers.iter().filter_map(|outlier| by_path(&outlier.place.path)) {
        if found.len() >= MOST_ODD {
            break;
        }
        if node(row).is_some_and(|node| found.iter().all(|one| one.node != node)) {
            found.extend(odd(row, OddBecause::Outlier, rows, machines));
        }
    }
    found
}

/// Of recordings that did not fail of their own: what comes next, not what was met.
fn nearest(rows: &[&FleetRow]) -> Option<FleetLimit> {
    let near = |row: &&&FleetRow| row.failure != Some(FailureKind::Own) && row.limit_time_left_s.is_some();
    let approaching: Vec<&FleetRow> = rows.iter().filter(near).copied().collect();
    let time = |row: &FleetRow| row.limit_time_left_s.unwrap_or(f64::INFINITY);
    let nearest = approaching.iter().copied().min_by(|a, b| time(a).total_cmp(&time(b)))?;
    let same = approaching.iter().filter(|row| row.limit == nearest.limit).count();
    let mut place = place(nearest);
    place.rank = nearest.rank;
    Some(FleetLimit {
        place,
        limit: nearest.limit.clone()?,
        scope: nearest.limit_scope.clone().unwrap_or_default(),
        time_left_s: time(nearest),
        recordings: same,
    })
}
