//! What all processes of the job hold together, over time: sums that no single process shows.
//!
//! The surprise: faults of a process that ended are gone from the next sample, so that the sum of all counters falls. What
//! each process took since the sample before is summed instead.

use super::series::Series;
use std::collections::HashMap;
use ullage_model::{Measured, ProcessId, Sample};

/// Sums over the job.
#[derive(Clone, Debug, Default)]
pub struct JobTotals {
    /// Swapped out, bytes.
    pub swapped: Series,
    /// Anonymous memory, swapped out or not, bytes.
    pub held: Series,
    /// Resident sets, so that a page that several processes map counts several times, bytes.
    pub resident: Series,
    /// Page tables, bytes.
    pub page_tables: Series,
    /// Faults that waited for a disk, since the job was first seen.
    pub major_faults: Series,
    faults: HashMap<ProcessId, u64>,
}

impl JobTotals {
    pub(crate) fn read(&mut self, sample: &Sample) {
        let (mut swapped, mut anonymous, mut resident, mut tables) = (0u64, 0u64, 0u64, 0u64);
        let mut taken = self.major_faults.last().map_or(0.0, |(_, faults)| faults);
        let mut faults = HashMap::with_capacity(sample.processes.len());
        for reading in &sample.processes {
            let Measured::Known(memory) = reading.memory else { continue };
            swapped = swapped.saturating_add(memory.swap.0);
            anonymous = anonymous.saturating_add(memory.anonymous.0);
            resident = resident.saturating_add(memory.resident().0);
            tables = tables.saturating_add(memory.page_tables.0);
            let before = self.faults.get(&reading.id).copied().unwrap_or(0);
            taken += reading.major_faults.saturating_sub(before) as f64;
            faults.insert(reading.id, reading.major_faults);
        }
        self.faults = faults;
        self.swapped.push(sample.at, swapped as f64);
        self.held.push(sample.at, anonymous.saturating_add(swapped) as f64);
        self.resident.push(sample.at, resident as f64);
        self.page_tables.push(sample.at, tables as f64);
        self.major_faults.push(sample.at, taken);
    }
}
