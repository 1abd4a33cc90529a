//! How sure is a finding whose certainty does not stand beside its status?

/// The kernel's log named the process that the machine's shortage killed.
pub(crate) const HOST_KILL: f64 = 0.99;
/// The same of a set of NUMA nodes.
pub(crate) const NODE_KILL: f64 = 0.97;
/// Most is kept by this allocator: from the least to the most of what all keep.
pub(crate) const RETAINED_LEAST: f64 = 0.6;
pub(crate) const RETAINED_MORE: f64 = 0.3;
/// One OpenMP runtime loaded twice, from two files; two of different makers.
pub(crate) const ONE_OPENMP: f64 = 0.5;
pub(crate) const TWO_OPENMPS: f64 = 0.9;
/// Mappings were read at their limit, or projected to it.
pub(crate) const MAPPINGS_MET: f64 = 0.9;
pub(crate) const MAPPINGS_PROJECTED: f64 = 0.75;
