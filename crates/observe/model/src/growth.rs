//! Which kind of growth a run shows: one word, and what it rests on.

use crate::{At, LimitKind, ProcessRef, Scope};
use serde::{Deserialize, Serialize};

/// A kind of growth. Only `Live*` and the two leaks of counts are memory or handles that the program itself keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrowthClass {
    /// Objects of Python.
    LivePythonObjects,
    /// Blocks that native code took: arrays, buffers of libraries.
    LiveNativeBlocks,
    /// Tensors of torch that Python still refers to.
    LiveTensors,
    /// Private memory; which of the three, or whether it is free inside the allocator, cannot be told.
    LiveGrowth,
    /// Free, and kept by the allocator.
    FreedButHeld,
    /// Forked processes write into pages that they shared.
    CopyOnWrite,
    /// Shared memory that is produced and not given back.
    SharedMemoryBacklog,
    /// Mapped files that are touched for the first time. The kernel can take their pages back.
    MappedFiles,
    /// Files in memory that nobody maps. The kernel takes them back.
    PageCache,
    /// Mappings become more, not memory.
    MappingLeak,
    /// Descriptors become more, not memory.
    FdLeak,
    /// Processes become more.
    ProcessAccumulation,
    /// Page tables, and what else the kernel holds for the job.
    KernelMemory,
    /// Nothing grows: memory is short, and pages go to swap and come back.
    SwapThrash,
    /// It grew early in the run, and has been at rest since.
    WarmUp,
    /// It grew later, and has come to rest.
    Plateau,
    /// Nothing grew.
    None,
}

impl GrowthClass {
    /// All of them.
    pub const ALL: [GrowthClass; 17] = [
        GrowthClass::LivePythonObjects,
        GrowthClass::LiveNativeBlocks,
        GrowthClass::LiveTensors,
        GrowthClass::LiveGrowth,
        GrowthClass::FreedButHeld,
        GrowthClass::CopyOnWrite,
        GrowthClass::SharedMemoryBacklog,
        GrowthClass::MappedFiles,
        GrowthClass::PageCache,
        GrowthClass::MappingLeak,
        GrowthClass::FdLeak,
        GrowthClass::ProcessAccumulation,
        GrowthClass::KernelMemory,
        GrowthClass::SwapThrash,
        GrowthClass::WarmUp,
        GrowthClass::Plateau,
        GrowthClass::None,
    ];

    /// Its word in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            GrowthClass::LivePythonObjects => "live-python-objects",
            GrowthClass::LiveNativeBlocks => "live-native-blocks",
            GrowthClass::LiveTensors => "live-tensors",
            GrowthClass::LiveGrowth => "live-growth",
            GrowthClass::FreedButHeld => "freed-but-held",
            GrowthClass::CopyOnWrite => "copy-on-write",
            GrowthClass::SharedMemoryBacklog => "shared-memory-backlog",
            GrowthClass::MappedFiles => "mapped-files",
            GrowthClass::PageCache => "page-cache",
            GrowthClass::MappingLeak => "mapping-leak",
            GrowthClass::FdLeak => "fd-leak",
            GrowthClass::ProcessAccumulation => "process-accumulation",
            GrowthClass::KernelMemory => "kernel-memory",
            GrowthClass::SwapThrash => "swap-thrash",
            GrowthClass::WarmUp => "warm-up",
            GrowthClass::Plateau => "plateau",
            GrowthClass::None => "none",
        }
    }
}

/// What kind of growth a run shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// In one word.
    pub class: GrowthClass,
    /// What that rests on: one sentence or more.
    pub because: String,
    /// By how much the job grew in this way.
    pub bytes: u64,
    /// How fast.
    pub per_second: f64,
    /// When it began; none where nothing grew.
    pub since: Option<At>,
    /// Of all that grew, the share that is of this class.
    pub share: f64,
    /// Whose; none where it is nobody's alone.
    pub process: Option<ProcessRef>,
    /// The limit that it would meet first.
    pub until: Option<GrowthLimit>,
    /// All that grew, by class, largest first.
    pub parts: Vec<GrowthPart>,
    /// The cause among the findings that explains it, a note too.
    pub explained_by: Option<String>,
}

/// A limit that growth runs into.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthLimit {
    /// What is limited.
    pub kind: LimitKind,
    /// Whose limit it is.
    pub scope: Scope,
    /// Seconds until it is met at this speed; none where that is too far ahead to tell.
    pub time_left_s: Option<f64>,
}

/// Part of the growth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowthPart {
    /// Of which class.
    pub class: GrowthClass,
    /// How much.
    pub bytes: u64,
    /// Of all that grew.
    pub share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::{Error, StrDeserializer};
    use serde::de::IntoDeserializer;

    #[test]
    fn every_class_is_spelt_as_serde_spells_it() {
        for class in GrowthClass::ALL {
            let word: StrDeserializer<'_, Error> = class.id().into_deserializer();
            assert_eq!(GrowthClass::deserialize(word), Ok(class));
        }
    }
}
