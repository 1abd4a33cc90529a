//! Whose bytes are these? From samples to the memory of the whole tree: each page once, by category, with who shares it
//! and what forked processes have copied. Parts and what is unexplained are the whole.
//!
//! A survey of pages, where one was made, says how private memory is shared; between two of them the exact sizes of each
//! process carry its figures on. The surprise: before the first survey a forked process is counted with what it can
//! have taken since its fork, which its page faults bound.
#![forbid(unsafe_code)]

mod bounds;
mod copies;
mod lives;
mod malloc;
mod parts;
mod surveyed;
mod whole;

use crate::copies::Log;
use crate::lives::Lives;
use crate::surveyed::Surveyed;
use ullage_model::{
    AgentMessage, CopyOnWrite, Event, EventKind, FilesystemUse, MemoryAt, MemorySummary, ProcessId, Sample,
};

pub use crate::surveyed::SegmentUse;

/// Takes a run's samples and events in order of time.
#[derive(Clone, Debug, Default)]
pub struct Accountant {
    lives: Lives,
    surveyed: Option<Surveyed>,
    segments: Option<Vec<SegmentUse>>,
    log: Log,
    peak: MemoryAt,
    now: MemoryAt,
    last: Option<MemoryAt>,
    /// Bytes in use in the job's /dev/shm before it did anything.
    shm_at_start: Option<u64>,
}

impl Accountant {
    /// Adds an event: who was forked from whom, what malloc said.
    pub fn event(&mut self, event: &Event) {
        match &event.what {
            EventKind::ProcessSeen { facts } => self.lives.seen(facts),
            EventKind::Machine { facts } => self.log.machine(facts),
            EventKind::Agent { id: Some(id), message: AgentMessage::Memory { figures }, .. } => {
                self.lives.said(*id, figures);
            }
            _ => {}
        }
    }

    /// The segments at the next sample, counted exactly: better than what a survey estimates of them.
    pub fn segments(&mut self, segments: &[SegmentUse]) {
        self.segments = Some(segments.to_vec());
    }

    /// Adds a sample. Bytes that the tree holds at it.
    pub fn sample(&mut self, sample: &Sample) -> u64 {
        self.lives.read(sample);
        for reading in &sample.filesystems {
            if reading.used_for == FilesystemUse::Shm {
                self.shm_at_start.get_or_insert(reading.used.0);
            }
        }
        if let Some(surveyed) = Surveyed::of(sample) {
            self.log.note(sample, &surveyed, &self.lives);
            self.surveyed = Some(surveyed);
        }
        if let (Some(surveyed), Some(segments)) = (&mut self.surveyed, self.segments.take()) {
            surveyed.count_exactly(&segments, sample);
        }
        let now = whole::memory(sample, self.surveyed.as_ref(), &self.lives, self.shm_at_start);
        let bytes = now.bytes;
        if bytes == 0 {
            return 0;
        }
        self.now = now.clone();
        if !sample.survey.is_empty() {
            self.last = Some(now.clone());
        }
        // What is certain counts: of two figures that chance sets apart, the better known one is the peak.
        let certain = |memory: &MemoryAt| memory.bytes.saturating_sub(memory.error_bytes);
        let better_known = self.peak.sharing.is_none()
            && now.sharing.is_some()
            && now.bytes.saturating_add(now.error_bytes) >= self.peak.bytes;
        if certain(&now) > certain(&self.peak) || better_known || self.peak.bytes == 0 {
            self.peak = now;
        }
        bytes
    }

    /// The tree at the last sample in which it held anything.
    pub fn now(&self) -> &MemoryAt {
        &self.now
    }

    /// The tree at the moment of a sample that was not added yet.
    pub fn tree(&self, sample: &Sample) -> MemoryAt {
        let surveyed = Surveyed::of(sample);
        whole::memory(sample, surveyed.as_ref().or(self.surveyed.as_ref()), &self.lives, self.shm_at_start)
    }

    /// Private memory of each process at the peak.
    pub fn own_at_peak(&self) -> &[(ProcessId, u64)] {
        &self.peak.own
    }

    /// Of the whole run so far. Names and roles of processes are left to whoever knows them.
    pub fn summary(&self) -> MemorySummary {
        let MemoryAt { bytes, error_bytes, source, categories, beside, sharing, .. } = self.peak.clone();
        let unexplained = categories.get(parts::UNEXPLAINED).copied().unwrap_or(0);
        MemorySummary {
            peak_bytes: bytes,
            source,
            unexplained_share: if bytes > 0 { unexplained as f64 / bytes as f64 } else { 0.0 },
            categories,
            error_bytes,
            beside,
            by_role: Vec::new(),
            sharing,
            last: self.last.clone(),
            copy_on_write: self.copy_on_write(),
        }
    }

    fn copy_on_write(&self) -> Vec<CopyOnWrite> {
        self.log.readings()
    }
}

#[cfg(test)]
mod tests;
