//! The categories of a tree's memory, which sum to the whole.

use std::collections::BTreeMap;
use ullage_model::{Counted, Pages};

pub(crate) const UNEXPLAINED: &str = "unexplained";

/// Category ids that were known before pages were surveyed: for what was not told apart.
pub(crate) const fn coarse(counted: Counted) -> &'static str {
    match counted {
        Counted::Anonymous => "anonymous",
        Counted::Shared => "shared",
        Counted::File => "file",
        Counted::Not => "gpu-mappings",
    }
}

/// Bytes by category id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) by_id: BTreeMap<String, u64>,
}

impl Parts {
    pub(crate) fn add(&mut self, id: &str, bytes: u64) {
        if bytes > 0 {
            let entry = self.by_id.entry(id.to_owned()).or_default();
            *entry = entry.saturating_add(bytes);
        }
    }

    /// As much as `bytes`, in the proportions of these rows; what has grown beyond them is not told apart.
    pub(crate) fn spread<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a Pages> + Clone,
        counted: Counted,
        bytes: u64,
    ) {
        let before: u64 = rows.clone().map(|row| row.bytes.0).sum();
        let mut left = bytes;
        let share = if before > bytes { bytes as f64 / before as f64 } else { 1.0 };
        for row in rows {
            let part = ((row.bytes.0 as f64 * share) as u64).min(left);
            self.add(row.kind.id(), part);
            left -= part;
        }
        // A rest of rounding is no other kind.
        let first = self.by_id.keys().next().cloned();
        match first {
            Some(first) if left < 4096 => self.add(&first, left),
            _ => self.add(coarse(counted), left),
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        self.by_id.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// All of them smaller in proportion, so that they sum to `bytes`.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        let whole = self.sum();
        if whole <= bytes {
            return;
        }
        let mut left = bytes;
        for part in self.by_id.values_mut() {
            *part = (u128::from(*part) * u128::from(bytes) / u128::from(whole)) as u64;
            left -= *part;
        }
        if let Some(largest) = self.by_id.values_mut().max() {
            *largest += left;
        }
    }
}
