//! Which metrics are there? Their names, kinds, help and labels, in the order in which they are written.
//!
//! Names follow Prometheus' "Metric and label naming": base units, `_total` for counters. Labels are bounded: a role and an
//! index, never a pid; the job's id is `job_id`, because a label `job` becomes `exported_job` when it is scraped.

/// What a metric's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It rises and falls.
    Gauge,
    /// It only rises, and begins anew with a run.
    Counter,
}

macro_rules! metrics {
    ($($variant:ident $kind:ident $name:literal ($($label:literal),*) $help:literal;)*) => {
        /// A metric of ullage.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $(#[doc = $help] $variant,)*
        }

        impl Metric {
            /// All of them, in the order in which they are written.
            pub const ALL: &[Metric] = &[$(Metric::$variant),*];

            /// As Prometheus knows it.
            pub const fn name(self) -> &'static str {
                match self { $(Metric::$variant => $name,)* }
            }

            /// What its value is.
            pub const fn kind(self) -> Kind {
                match self { $(Metric::$variant => Kind::$kind,)* }
            }

            /// One sentence, without quotes and backslashes.
            pub const fn help(self) -> &'static str {
                match self { $(Metric::$variant => $help,)* }
            }

            /// Its labels beside `run`.
            pub const fn labels(self) -> &'static [&'static str] {
                match self { $(Metric::$variant => &[$($label),*],)* }
            }
        }
    };
}

metrics! {
    RunInfo Gauge "ullage_run_info" ("job_id", "node", "rank", "attempt", "command")
        "Always 1: which job, node, rank and command a run is.";
    SampleTime Gauge "ullage_sample_timestamp_seconds" ()
        "When the job was last read, in seconds since 1970.";
    Memory Gauge "ullage_memory_bytes" ("category")
        "Memory that the processes of the job hold, each page once; the categories sum to the job.";
    MemoryBeside Gauge "ullage_memory_beside_bytes" ("category")
        "Memory that stands beside the job and is counted in no category of it.";
    MemoryError Gauge "ullage_memory_error_bytes" ()
        "Half of the 95 % confidence interval of the job's memory.";
    ProcessMemory Gauge "ullage_process_memory_bytes" ("role", "index", "kind")
        "Memory of the processes of a role and index: private, shared (pages that it maps, so that processes sum to more than the job), swap.";
    Processes Gauge "ullage_processes" ("role")
        "Processes that run.";
    LimitUsed Gauge "ullage_limit_used_ratio" ("limit", "scope")
        "Share of a limit that is used; of the processes of a role, the one nearest to its limit.";
    LimitLeft Gauge "ullage_limit_seconds_left" ("limit", "scope")
        "Seconds until a limit is met at the present growth; absent where nothing grows.";
    Growth Gauge "ullage_growth_bytes_per_second" ("class")
        "Growth of the kind that was judged last.";
    SharedBytes Gauge "ullage_shared_bytes" ("kind")
        "Bytes of shared segments.";
    SharedSegments Gauge "ullage_shared_segments" ("kind")
        "Shared segments.";
    OrphanedBytes Gauge "ullage_orphaned_bytes" ()
        "Bytes of shared segments that no process of the job uses.";
    OrphanedSegments Gauge "ullage_orphaned_segments" ()
        "Shared segments that no process of the job uses.";
    OomKills Counter "ullage_oom_kills_total" ()
        "OOM kills of the kernel in the job.";
    MemoryStall Counter "ullage_memory_stall_seconds_total" ()
        "Time in which all tasks of the machine waited for memory, since the run began.";
    MajorFaults Counter "ullage_major_faults_total" ("role")
        "Page faults that waited for a disk.";
    CpuTime Counter "ullage_cpu_seconds_total" ("role")
        "CPU time of the job's processes.";
    Restarts Counter "ullage_restarts_total" ()
        "How often torchrun has started its workers again.";
    Finding Gauge "ullage_finding" ("cause", "severity")
        "Always 1: a cause that was found; of a live run, as it was judged last.";
    RunEnded Gauge "ullage_run_ended" ("outcome")
        "Always 1: how a run has ended.";
    RunEndedTime Gauge "ullage_run_ended_timestamp_seconds" ()
        "When a run has ended, in seconds since 1970.";
    WatchCpu Counter "ullage_watch_cpu_seconds_total" ()
        "CPU time that ullage has used.";
    WatchMemory Gauge "ullage_watch_memory_bytes" ()
        "The most memory that ullage has used.";
}
