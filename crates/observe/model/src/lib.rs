//! The vocabulary of ullage: plain values that every room knows.
//!
//! Nothing here opens a file, asks a clock or writes sentences for people; [`figures`] alone spells their numbers, because
//! findings and reports share it. A value that could not be read is
//! [`Measured::Missing`] with its reason; a limit that does not exist is [`Limit::Unlimited`]; a process is
//! named by pid *and* start time ([`ProcessId`]), because pids are reused.
#![forbid(unsafe_code)]

pub mod agent;
pub mod census;
pub mod cgroup;
pub mod comparison;
pub mod event;
pub mod evidence;
pub mod fact;
pub mod figures;
pub mod finding;
pub mod fleet;
pub mod growth;
pub mod host;
pub mod identity;
pub mod limit;
pub mod limit_state;
pub mod measured;
pub mod met;
pub mod names;
pub mod outcome;
pub mod pages;
pub mod process;
pub mod proof;
pub mod run;
pub mod sample;
pub mod segment;
pub mod shared_memory;
pub mod source;
pub mod torch_count;
pub mod units;

pub use agent::{
    figure, AgentMessage, Backlog, CountsAtFailure, ExceptionReport, Held, LoaderSettings, MallocFigures,
    RetainedByIterators, Weight,
};
pub use census::{
    Census, Garbage, GraphGradients, HeldGraph, Retainer, Site, Sites, TensorCount, TensorGroup,
};
pub use cgroup::{CgroupReading, CgroupVersion};
pub use comparison::{Against, Change, Comparison, Difference, Strength, Symptom, Tie};
pub use event::{Event, EventKind, KernelOomKill, Neighbour, Neighbours, OomConstraint};
pub use evidence::{Evidence, EvidenceSource, EvidenceValue, Unit};
pub use fact::{Fact, Facts, Snapshot, Unlimited};
pub use finding::{
    caused_by, Attempt, CopyOnWrite, Finding, FirstFailure, Fix, Mark, MemoryAt, MemorySummary, Place,
    ProcessRef, RoleMemory, Severity, Sharing, Undetermined, Verdict,
};
pub use fleet::{
    CascadeStep, FailureKind, FirstBy, FirstOfFleet, FleetAnswer, FleetCandidate, FleetDifference,
    FleetLimit, FleetMissing, FleetOutlier, FleetPlace, FleetRow, FleetStates, LostRecording, OddBecause,
    OddNode,
};
pub use growth::{Growth, GrowthClass, GrowthLimit, GrowthPart};
pub use host::{FilesystemReading, FilesystemUse, HostReading, MachineFacts};
pub use identity::ProcessId;
pub use limit::Limit;
pub use limit_state::{LimitKind, LimitState, Scope};
pub use measured::{Measured, Missing};
pub use met::{cgroup_facts, filesystem_facts};
pub use outcome::{BudgetUse, EndedBy, Ending, EndingSource, Outcome, OutcomeKind};
pub use pages::{Counted, PageKind, Pages};
pub use process::{
    Descriptors, Exclusive, Mappings, ProcessFacts, ProcessMemory, ProcessReading, ProcessState,
    ResourceLimits, Role,
};
pub use proof::{Proof, Status};
pub use run::{AskedRemedy, RunFacts, RunId};
pub use sample::{Cost, Sample};
pub use segment::{Creator, CreatorSource, Maker, Segment, SegmentKind};
pub use shared_memory::{
    LeftBehind, SegmentCreator, SegmentPlace, SegmentSeen, SegmentSummary, SegmentTotal,
};
pub use source::{Item, Source, SourceError};
pub use torch_count::{Collective, TorchCount, Waiting};
pub use units::{At, Bytes, ClockTicks};
